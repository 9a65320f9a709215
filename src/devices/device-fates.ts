import { and, eq } from "drizzle-orm"
import { now } from "../core/time"
import { forUpdate } from "../store/columns"
import type { Store } from "../store/store"
import { updateDevice } from "./device-rows"
import { type DeviceRow, devices } from "./tables"

/** What the providers of push messages find out about devices. */
export class DeviceFates {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

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
