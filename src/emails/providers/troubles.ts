import { monotonic, now } from "../../core/time"
import {
  type Named,
  type TroubleKind,
  tellBegin,
  tellEnd,
  tellStill,
} from "../../providers/trouble-log"

const AGAIN_MS = 60_000

/** More providers than that are not remembered for having been told of lately. */
const MOST_TOLD = 1000

/** What a message met, beside the refused login, which the database knows. */
export interface Met {
  kind: Exclude<TroubleKind, "refuses_login">
  named: Named
  reason: string
  /**
   * Asks the provider itself: rejects with its words, and resolves with whether that settles it. False
   * where nobody can be asked, or the configuration is another one by now.
   */
  check(): Promise<"fine" | "unknown" | "gone">
  /** Once it is over. */
  onEnd(): void
}

interface Trouble extends Met {
  since: string
  is_told: boolean
  /** Since the last line of the log. */
  is_met: boolean
  timer: Timer
}

/** A provider that has trouble now, as this process met it. */
export interface TroubleLine extends Named {
  kind: TroubleKind
  reason: string
  since: string
}

/**
 * Providers that cannot be reached or will not deliver for us, as messages met them: one line of the
 * log when it begins, one a minute while it lasts, one when it ends. Where a provider can be asked
 * without a message it is, so that the end shows though nobody sends. A provider that fails and works
 * by turns is told of once a minute at most.
 */
export class Troubles {
  readonly #known = new Map<string, Trouble>()
  readonly #told_at = new Map<string, number>()
  readonly #again_ms: number

  constructor({ again_ms = AGAIN_MS }: { again_ms?: number } = {}) {
    this.#again_ms = again_ms
  }

  /** Returns whether it begins. */
  met(met: Met): boolean {
    const key = met.named.config_id
    const known = this.#known.get(key)
    if (known) {
      Object.assign(known, met, { is_met: true })
      return false
    }
    const is_told = !this.#wasToldOf(key)
    const timer = setTimeout(() => void this.#look(key), this.#again_ms)
    timer.unref()
    this.#known.set(key, { ...met, since: now(), is_told, is_met: false, timer })
    if (is_told) this.#tell(key, () => tellBegin(met.kind, met.named, met.reason))
    return true
  }

  /** It did what was asked of it. Returns whether it had trouble. */
  worked(key: string): boolean {
    const known = this.#known.get(key)
    if (!known) return false
    this.forget(key)
    if (known.is_told) tellEnd(known.kind, known.named, known.since)
    known.onEnd()
    return true
  }

  /** It has another trouble, or is gone. */
  forget(key: string): void {
    clearTimeout(this.#known.get(key)?.timer)
    this.#known.delete(key)
  }

  list(): TroubleLine[] {
    return [...this.#known.values()].map(({ named, kind, reason, since }) => ({
      ...named,
      kind,
      reason,
      since,
    }))
  }

  close(): void {
    for (const key of [...this.#known.keys()]) this.forget(key)
  }

  async #look(key: string) {
    const known = this.#known.get(key)
    if (!known) return
    const found = await known.check().catch((error: Error) => error)
    if (this.#known.get(key) !== known) return // it ended meanwhile
    if (found === "gone") return this.forget(key)
    // What it refuses may come after the point to which a check goes.
    if (found === "fine" && known.kind === "unreachable") return void this.worked(key)
    const lasts = found instanceof Error || known.is_met
    const reason = found instanceof Error ? found.message : known.reason
    if (lasts) this.#tell(key, () => this.#tellOf(known, reason))
    known.is_met = false
    known.timer = setTimeout(() => void this.#look(key), this.#again_ms)
    known.timer.unref()
  }

  #tellOf(known: Trouble, reason: string) {
    const { kind, named, since, is_told } = known
    if (is_told) tellStill(kind, named, { reason, since })
    else tellBegin(kind, named, reason)
    known.is_told = true
  }

  #wasToldOf = (key: string) => monotonic() - (this.#told_at.get(key) ?? -Infinity) < this.#again_ms

  #tell(key: string, tell: () => void) {
    if (this.#told_at.size >= MOST_TOLD) this.#told_at.clear()
    this.#told_at.set(key, monotonic())
    tell()
  }
}
