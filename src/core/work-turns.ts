import { nextTurn } from "./time"

/**
 * Items that wait, by their owner and kind. Owners take turns, and so do the kinds of one owner: many items
 * of one delay the others by one item each.
 */
export class FairQueue<Item> {
  readonly #owners = new Map<string, Map<string, Item[]>>()

  add(owner: string, kind: string, item: Item): void {
    const kinds = this.#owners.get(owner) ?? new Map<string, Item[]>()
    this.#owners.set(owner, kinds)
    const items = kinds.get(kind)
    if (items) items.push(item)
    else kinds.set(kind, [item])
  }

  /** The next item, which waits no more; undefined where none waits. */
  next(): Item | undefined {
    const [owner, kinds] = firstOf(this.#owners) ?? []
    const [kind, items] = (kinds && firstOf(kinds)) ?? []
    if (owner === undefined || kind === undefined || !kinds || !items) return undefined
    const item = items.shift()
    moveBack(kinds, kind, items.length > 0)
    moveBack(this.#owners, owner, kinds.size > 0)
    return item
  }
}

const firstOf = <Value>(map: Map<string, Value>): [string, Value] | undefined =>
  map.entries().next().value

/** Behind the others, or away. */
function moveBack<Value>(map: Map<string, Value>, key: string, stays: boolean): void {
  const value = map.get(key)
  map.delete(key)
  if (stays && value !== undefined) map.set(key, value)
}

const waiting = new FairQueue<() => void>()
let is_running = false

/**
 * Resolves in a later turn of the event loop, and in each turn for one alone: so much work follows that
 * two such pieces in one turn would be felt by all others. Owners, which are projects, take turns.
 */
export function workTurn(owner: string): Promise<void> {
  return new Promise((resolve) => {
    waiting.add(owner, "", resolve)
    if (!is_running) void giveTurns()
  })
}

async function giveTurns() {
  is_running = true
  await nextTurn()
  for (let begin = waiting.next(); begin; begin = waiting.next()) {
    begin()
    await nextTurn()
  }
  is_running = false
}
