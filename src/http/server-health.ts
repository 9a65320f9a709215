import type { Disk } from "../core/disk"
import { millis, monotonic, sleep } from "../core/time"
import { unavailable } from "./envelope"
import type { AnyRoute } from "./route"

const STALLED_MILLISECONDS = 60_000
const ANSWER_MILLISECONDS = 2000
const LOOK_MILLISECONDS = 1000

/** What `/readyz` looks at. */
export interface Vitals {
  disk: Disk
  /** When, by `monotonic`, the job loop last looked for work. */
  progressedAt: () => number
  /** `ok`, `off: <reason>`, or what is wrong with the mail servers. */
  smtp: () => string
  /** How far a check of the database beside the work is, if there is one. */
  checking?: { readonly progress: string | undefined } | undefined
  /** Asks the database something small; without it only failed writes tell of its trouble. */
  ask?: () => Promise<unknown>
  /** Troubles that are no reason to send requests elsewhere. */
  warnings?: () => Promise<string[]>
}

export type ServerTrouble = "draining" | "damaged" | "away" | "unwritable" | "disk_low"

/** Whether this process may take work, and what is wrong when it may not. */
export class ServerHealth {
  readonly started_at = millis()
  readonly #vitals: Vitals
  readonly #drainListeners = new Set<() => void>()
  #draining = false
  #answers = true
  #warnings: string[] = []
  #looked_at = Number.NEGATIVE_INFINITY

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

  /** Asks the database, at most once a second. One that is silent for 2 s does not answer. */
  async look(): Promise<void> {
    const { ask, warnings = async () => [] } = this.#vitals
    if (!ask || monotonic() - this.#looked_at < LOOK_MILLISECONDS) return
    this.#looked_at = monotonic()
    const asked = async () => {
      await ask()
      this.#warnings = await warnings().catch(() => [])
    }
    const answered = asked().then(
      () => true,
      () => false,
    )
    this.#answers = await Promise.race([answered, sleep(ANSWER_MILLISECONDS).then(() => false)])
  }

  checks() {
    const { disk, progressedAt, smtp } = this.#vitals
    const stalled = monotonic() - progressedAt() > STALLED_MILLISECONDS
    return {
      database: this.#database(),
      jobs: stalled ? "no progress for 60 s" : "ok",
      disk: disk.state() === "ok" ? "ok" : "below storage.min_free_mb",
      smtp: smtp(),
    }
  }

  #database(): string {
    const { disk, checking } = this.#vitals
    if (disk.isDamaged()) return "damaged"
    if (!this.#answers) return "does not answer"
    if (!disk.healthy()) return "not writable"
    const progress = checking?.progress
    return progress === undefined ? "ok" : `ok, being checked: ${progress}`
  }

  /** What people should see to, though this process may be sent work. */
  get warnings(): string[] {
    return this.#warnings
  }

  get status(): "ok" | "draining" | "unavailable" {
    if (this.#draining) return "draining"
    const isFine = (check: string) => /^(ok|off)\b/.test(check)
    return Object.values(this.checks()).every(isFine) ? "ok" : "unavailable"
  }

  /** Why nothing new may be written. The first that applies. */
  get trouble(): ServerTrouble | undefined {
    const { disk } = this.#vitals
    if (this.#draining) return "draining"
    if (disk.isDamaged()) return "damaged"
    if (!this.#answers) return "away"
    if (!disk.healthy()) return "unwritable"
    return disk.state() === "low" ? "disk_low" : undefined
  }

  /** Reads go on as long as they can; what would write is refused before it is read. */
  refuse(route: AnyRoute) {
    if (route.scope === "-") return
    if (this.#draining)
      throw unavailable(
        "This server is shutting down. Send the request again in a second.",
        "draining",
        1,
      )
    const reads = route.method === "GET" || /:read$/.test(route.scope)
    if (reads) return
    const { disk } = this.#vitals
    if (disk.isDamaged()) throw unavailable(DAMAGED, "damaged", 60)
    if (!disk.healthy()) throw unavailable(UNWRITABLE, "storage")
    if (disk.state() === "low" && route.sends) {
      throw unavailable(
        "The disk of the server is almost full, so it accepts no new mail.",
        "disk_low",
        30,
      )
    }
  }
}

const UNWRITABLE =
  "The storage cannot be written at the moment. Nothing was accepted. Try again in a few seconds."
const DAMAGED =
  "The database is damaged. The server accepts nothing until its operator repairs the database."
