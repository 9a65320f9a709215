import { and, eq, sql } from "drizzle-orm"
import { now } from "../core/time"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { WriteBehind } from "../store/write-behind"
import { updateDevice } from "./device-rows"
import { type DeviceRow, devices } from "./tables"

/** What became of the messages to a device since it was written last. */
interface DeviceNote extends Pick<DeviceRow, "id" | "project_id" | "token_hash"> {
  succeeded_at: string | null
  /** After that success. */
  failures: number
}

/** Notes of one transaction: other writers do not wait long for it. */
const AT_ONCE = 50

/** Devices that wait. What comes beyond that is not noted. */
const MOST_WAITING = 20_000

/** For so long the notes of a device become one. */
const HOLD_MILLISECONDS = 5000

/** What the providers of push messages find out about devices. */
export class DeviceFates {
  readonly #store: Store
  readonly #behind: WriteBehind<DeviceNote>

  constructor(store: Store) {
    this.#store = store
    this.#behind = new WriteBehind({
      write: (group) => store.tx((tx) => writeNotes(tx, group)),
      ...{ limit: AT_ONCE, most: MOST_WAITING, ripe_ms: HOLD_MILLISECONDS },
      lost: "Some results of devices were not noted, because too many came at once or the storage refused them.",
    })
  }

  /** A provider took a message for the device. Nobody waits for the note. */
  succeeded(device: DeviceRow) {
    const note = this.#noteOf(device)
    if (note) Object.assign(note, { succeeded_at: now(), failures: 0 })
  }

  /** A message to the device failed for good. */
  failed(device: DeviceRow) {
    const note = this.#noteOf(device)
    if (note) note.failures += 1
  }

  #noteOf({ id, project_id, token_hash }: DeviceRow): DeviceNote | undefined {
    const known = this.#behind.get(token_hash + id)
    if (known || !this.#behind.admit()) return known
    const fresh = { id, project_id, token_hash, succeeded_at: null, failures: 0 }
    return this.#behind.put(token_hash + id, fresh)
  }

  /** Writes what has waited long enough. */
  writeRipe = (): Promise<void> => this.#behind.writeRipe()

  /** Resolves when everything noted so far is written, or given up. */
  flush = (): Promise<void> => this.#behind.flush()

  /** The device can get nothing any more, unless its app has presented a token since then (ISO 8601). */
  async gone(tried: DeviceRow, reason: string, since = tried.token_at): Promise<void> {
    const { id, project_id, token_hash } = tried
    await this.#store.tx(async (tx) => {
      const ours = and(eq(devices.id, id), eq(devices.project_id, project_id))
      const [row] = await forUpdate(tx.select().from(devices).where(ours))
      if (!row || row.status === "expired") return
      if (row.token_hash !== token_hash || row.token_at > since) return
      const change = { status: "expired", status_reason: reason, updated_at: now() } as const
      await updateDevice(tx, row, { ...row, ...change })
    })
  }
}

/** Two nodes write in the same order. A device with another token by now began anew. */
async function writeNotes(tx: Tx, group: DeviceNote[]): Promise<void> {
  const notes = group.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  for (const { id, project_id, token_hash, succeeded_at, failures } of notes) {
    const change = succeeded_at
      ? { last_success_at: succeeded_at, failure_count: failures }
      : { failure_count: sql`${devices.failure_count} + ${failures}` }
    const ours = and(eq(devices.id, id), eq(devices.project_id, project_id))
    await tx
      .update(devices)
      .set(change)
      .where(and(ours, eq(devices.token_hash, token_hash)))
  }
}
