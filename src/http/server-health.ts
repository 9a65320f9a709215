import type { Disk } from "../core/disk"
import { millis, monotonic, sleep } from "../core/time"
import { unavailable } from "./envelope"
import type { AnyRoute } from "./route"

const STALLED_MILLISECONDS = 60_000
const ANSWER_MILLISECONDS = 2000
const LOOK_MILLISECONDS = 1000

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
  /** The same, of what an operator must see to before something is lost: the server is `degraded`. */
  degradations?: () => Promise<string[]>
}

const nothing = async (): Promise<string[]> => []

export type ServerTrouble = "draining" | "starting" | "damaged" | "away" | "unwritable" | "disk_low"

/** Whether this process may take work, and what is wrong when it may not. */
export class ServerHealth {
  readonly started_at = millis()
  readonly #vitals: Vitals
  readonly #drainListeners = new Set<() => void>()
  #draining = false
  #starting = false
  #answers = true
  #warnings: string[] = []
  #is_degraded = false
  #looked_at = Number.NEGATIVE_INFINITY

  constructor(vitals: Vitals) {
    this.#vitals = vitals
  }

  drain() {
    this.#draining = true
    for (const listener of this.#drainListeners) listener()
  }

  /** Nothing is accepted until the returned function is called: neither requests nor mail. */
  holdBack(): () => void {
    this.#starting = true
    return () => {
      this.#starting = false
    }
  }

  /** For requests that only wait: they answer with what they have. Returns how to stop listening. */
  onDrain(listener: () => void): () => void {
    if (this.#draining) listener()
    this.#drainListeners.add(listener)
    return () => void this.#drainListeners.delete(listener)
  }

  /** Asks the database, at most once a second. One that is silent for 2 s does not answer. */
  async look(): Promise<void> {
    const { ask, warnings = nothing, degradations = nothing } = this.#vitals
    if (!ask || monotonic() - this.#looked_at < LOOK_MILLISECONDS) return
    this.#looked_at = monotonic()
    const asked = async () => {
      await ask()
      const degraded = await degradations().catch(() => [])
      this.#warnings = [...degraded, ...(await warnings().catch(() => []))]
      this.#is_degraded = degraded.length > 0
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

  /** A server that is `degraded` works; its warnings say what is wrong. */
  get status(): "ok" | "degraded" | "draining" | "unavailable" {
    if (this.#draining) return "draining"
    if (this.#starting || this.faults.length > 0) return "unavailable"
    return this.#is_degraded ? "degraded" : "ok"
  }

  /** Whether requests may be sent to this server. */
  get isReady(): boolean {
    return this.status === "ok" || this.status === "degraded"
  }

  /** The checks that fail, as `database: not writable`. */
  get faults(): string[] {
    const isFine = (check: string) => /^(ok|off)\b/.test(check)
    const wrong = Object.entries(this.checks()).filter(([, check]) => !isFine(check))
    return wrong.map(([name, check]) => `${name}: ${check}`)
  }

  /** Why nothing new may be written. The first that applies. */
  get trouble(): ServerTrouble | undefined {
    const { disk } = this.#vitals
    if (this.#draining) return "draining"
    if (this.#starting) return "starting"
    if (disk.isDamaged()) return "damaged"
    if (!this.#answers) return "away"
    if (!disk.healthy()) return "unwritable"
    return disk.state() === "low" ? "disk_low" : undefined
  }

  /** Reads go on as long as they can; what would write is refused before it is read. */
  refuse(route: AnyRoute) {
    if (this.#starting && !ALWAYS.has(route.path)) throw unavailable(STARTING, "starting", 1)
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

/** Routes that tell how the process is, also while it may accept nothing. */
const ALWAYS: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/v1/health"])

const STARTING = "This server starts after an upgrade. Send the request again in a second."
const UNWRITABLE =
  "The storage cannot be written at the moment. Nothing was accepted. Try again in a few seconds."
const DAMAGED =
  "The database is damaged. The server accepts nothing until its operator repairs the database."
