import { emitAll } from "../../src/events/emit"
import type { Store } from "../../src/store/store"

interface Position {
  account_id: string
  project_id: string
}

/** Events of a project, of these types in this order, numbered from `first`. */
export const notifyEvents = (
  store: Store,
  place: Position,
  types: string[],
  first = 0,
  padding = "",
) =>
  store.tx((tx) => {
    const { account_id, project_id } = place
    const list = types.map((type, at) => ({
      account_id,
      project_id,
      subject_id: null,
      type,
      data: { n: first + at, ...(padding && { padding }) },
    }))
    return emitAll(tx, list)
  })
