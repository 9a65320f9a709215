type Effect = () => void

const CHANGE = /\b(?:insert into|update|delete from) "(\w+)"/

/** Tells listeners of commits that changed a table. Each store has one. */
export class TableChanges {
  readonly #listeners = new Map<string, Set<Effect>>()

  /** Calls `hear` after each commit that changed one of the tables, until the function is called. */
  listen(tables: string[], hear: Effect): () => void {
    for (const table of tables) {
      const known = this.#listeners.get(table) ?? new Set()
      this.#listeners.set(table, known.add(hear))
    }
    return () => {
      for (const table of tables) this.#listeners.get(table)?.delete(hear)
    }
  }

  /** Adds to what follows the commit of the transaction that changed the table. */
  note(table: string, effects: Effect[]): void {
    for (const hear of this.#listeners.get(table) ?? []) effects.push(hear)
  }

  /** The same for the table that a statement changes, if it is one of a transaction and does. */
  noteStatement(text: string, effects: Effect[] | undefined): void {
    const table = effects && CHANGE.exec(text)?.[1]
    if (table) this.note(table, effects)
  }
}
