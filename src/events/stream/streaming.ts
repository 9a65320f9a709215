import type { Reader } from "../../store/store"
import { envelopeOf, type Place } from "../feed"
import { follow } from "../follow"
import type { Watching } from "../watching"

/** A connection, as far as a stream of events needs it. */
export interface Wire {
  readonly closed: AbortSignal
  /** Resolves when there is room for the next frame. */
  send(frame: object): Promise<void>
  /** For what cannot be asked for again. */
  push(frame: object): void
}

/** What one connection follows. */
export interface Following {
  db: Reader
  project_id: string
  from: Place | undefined
  types: readonly string[]
}

/** Tells every event from a place on, and the changes of messages as long as it is there. */
export async function stream(
  wire: Wire,
  { db, project_id, from, types }: Following,
  watching: Watching,
): Promise<void> {
  const off = watching.watch(project_id, (message) => wire.push({ type: "message", message }))
  try {
    for await (const event of follow(db, project_id, from, types, wire.closed)) {
      await wire.send({ type: "event", event: envelopeOf(event) })
    }
  } finally {
    off()
  }
}
