import { engine } from "./columns"

/** Holds the rows until the end of the transaction, so that what was read is still true then. */
export function held<Query extends object>(query: Query): Query {
  if (engine === "sqlite") return query
  return (query as unknown as { for(strength: string): Query }).for("update")
}

/** As `held`, but others may hold the rows so at the same time: only a change has to wait. */
export function heldForShare<Query extends object>(query: Query): Query {
  if (engine === "sqlite") return query
  return (query as unknown as { for(strength: string): Query }).for("share")
}

/** Lets several nodes claim from one queue. SQLite has one writer, so it has nothing to skip. */
export function skipLocked<Query extends object>(query: Query): Query {
  if (engine === "sqlite") return query
  const select = query as unknown as { for(strength: string, options: object): Query }
  return select.for("update", { skipLocked: true })
}
