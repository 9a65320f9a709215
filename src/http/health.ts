import type { Disk } from "../core/disk"
import { millis } from "../core/time"
import { unavailable } from "./envelope"
import type { AnyRoute } from "./route"

const STALLED_MILLISECONDS = 60_000

/** What `/readyz` looks at. */
export interface Vitals {
  disk: Disk
  /** When the job loop last looked for work. */
  progressedAt: () => number
  smtp: () => boolean
}

/** Whether this process may take work, and what is wrong when it may not. */
export class Health {
  readonly started_at = millis()
  readonly #vitals: Vitals
  readonly #drainListeners = new Set<() => void>()
  #draining = false

  constructor(vitals: Vitals) {
    this.#vitals = vitals
  }

  drain() {
    this.#draining = true
    for (const listener of this.#drainListeners) listener()
  }

  /** For requests that only wait: they answer with what they have. Returns how to stop listening. */
  onDrain(listener: () => void): () => void {
    if (this.#draining) listener()
    this.#drainListeners.add(listener)
    return () => void this.#drainListeners.delete(listener)
  }

  checks() {
    const { disk, progressedAt, smtp } = this.#vitals
    const stalled = millis() - progressedAt() > STALLED_MILLISECONDS
    return {
      database: disk.healthy() ? "ok" : "not writable",
      jobs: stalled ? "no progress for 60 s" : "ok",
      disk: disk.state() === "ok" ? "ok" : "below storage.min_free_mb",
      smtp: smtp() ? "ok" : "not listening",
    }
  }

  get status(): "ok" | "draining" | "unavailable" {
    if (this.#draining) return "draining"
    return Object.values(this.checks()).every((check) => check === "ok") ? "ok" : "unavailable"
  }

  /** Reads go on as long as they can; what would write is refused before it is read. */
  refuse(route: AnyRoute) {
    if (route.scope === "-") return
    if (this.#draining) throw unavailable("This server is shutting down.", "draining", 1)
    const reads = route.method === "GET" || /:read$/.test(route.scope)
    if (reads) return
    const { disk } = this.#vitals
    if (!disk.healthy()) throw unavailable(UNWRITABLE, "storage")
    if (disk.state() === "low" && /:(send|publish|trigger)$/.test(route.scope)) {
      throw unavailable("The disk is almost full, so nothing new is accepted.", "disk_low", 30)
    }
  }
}

const UNWRITABLE = "The storage cannot be written at the moment. Nothing was accepted."
