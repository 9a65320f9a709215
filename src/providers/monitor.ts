import { log } from "../core/log"
import { monotonic, now } from "../core/time"
import type { Store, Tx } from "../store/store"
import {
  isNews,
  keepReturnPath,
  type LoggedProvider,
  logEnd,
  logLasting,
  logTrouble,
  named,
  pause,
  refusedAgain,
  resume,
  showTrouble,
  type TroubleKind,
} from "./health"
import type { OpenProviders, ProviderLease } from "./open-providers"
import {
  type Provider,
  ProviderError,
  type ProviderKind,
  type RecipientOutcome,
  type ReturnPathAnswer,
} from "./provider"
import { isProbe, routing } from "./routing"
import type { ConfigRow } from "./tables"

const AGAIN_MS = 60_000

/** More providers than that are not remembered for having been logged lately. */
const MOST_LOGGED = 1000

const NO_WORDS = "It gave no reason."

export interface MonitorParts {
  store: Store
  kind: ProviderKind
  providers: OpenProviders
  /** How often trouble that lasts is logged; a minute without it. */
  again_ms?: number
}

/** A provider that has trouble now, as this process met it. */
export interface ProviderTrouble extends LoggedProvider {
  kind: Exclude<TroubleKind, "refuses_login">
  reason: string
  since: string
}

interface KnownTrouble {
  trouble: ProviderTrouble
  config: ConfigRow
  is_logged: boolean
  /** Since the last line of the log. */
  is_met: boolean
  timer: Timer
}

/**
 * What messages find out about the providers that deliver them. A refused login pauses a provider
 * for all nodes, in the database. For other trouble this process logs its begin, its end, and one
 * line a minute in between. Where a provider can be asked without a message it is, so that the end
 * shows also while no message is sent. Trouble that comes and goes is logged once a minute at most.
 */
export class ProviderMonitor {
  readonly #parts: MonitorParts
  readonly #again_ms: number
  readonly #known = new Map<string, KnownTrouble>()
  /** Providers that this process has trouble with now, by id. */
  readonly troubled: ReadonlyMap<string, unknown> = this.#known
  readonly #logged_at = new Map<string, number>()
  #is_closed = false

  constructor(parts: MonitorParts) {
    this.#parts = parts
    this.#again_ms = parts.again_ms ?? AGAIN_MS
  }

  /**
   * A provider refused our login. Returns whether this message had asked for all: it is the probe, or
   * the first one that was refused.
   */
  async refused(message_id: string, config: ConfigRow, words: string | null): Promise<boolean> {
    const why = words ?? NO_WORDS
    this.#forget(config.id)
    if (isProbe(config, message_id)) {
      await this.#write(config, (tx) => refusedAgain(tx, config, why))
      return true
    }
    return (await this.#write(config, (tx) => pause(tx, config, why))) ?? false
  }

  /** A provider gave its word about a message, though it had trouble before: here, or by its row. */
  async worked(config: ConfigRow): Promise<void> {
    const was_known = this.#end(config.id)
    const is_marked = config.status === "error" && !was_known
    if (isProbed(config) || is_marked) await this.#write(config, (tx) => resume(tx, config))
  }

  /** A provider did nothing for a message, but did not refuse our login. */
  async failed(
    config: ConfigRow,
    { provider, is_shared }: ProviderLease,
    faults: RecipientOutcome[],
  ): Promise<void> {
    const [first] = faults
    if (!first || is_shared) return // a recipient's host is no provider
    const is_away = first.fault === "connection"
    if (!isProbed(config)) await this.#met(config, is_away, first.reason ?? NO_WORDS)
    else if (!is_away && (await tookLogin(provider))) {
      await this.#write(config, (tx) => resume(tx, config))
    }
  }

  /** What a relay made of our return path. */
  async heardReturnPath(config: ConfigRow, answer: ReturnPathAnswer): Promise<void> {
    if (isNews(config, answer))
      await this.#write(config, (tx) => keepReturnPath(tx, config, answer))
  }

  /** Providers that this process has trouble with now, refused logins aside. */
  troubles(): ProviderTrouble[] {
    return [...this.#known.values()].map(({ trouble }) => trouble)
  }

  close(): void {
    this.#is_closed = true
    for (const key of [...this.#known.keys()]) this.#forget(key)
  }

  async #met(config: ConfigRow, is_away: boolean, reason: string) {
    const kind = is_away ? ("unreachable" as const) : ("refuses_us" as const)
    const known = this.#known.get(config.id)
    if (known) {
      const trouble = { ...known.trouble, kind, reason }
      return void Object.assign(known, { trouble, config, is_met: true })
    }
    const is_logged = !this.#wasLogged(config.id)
    const timer = setTimeout(() => void this.#look(config.id), this.#again_ms)
    timer.unref()
    const trouble = { ...named(config), kind, reason, since: now() }
    this.#known.set(config.id, { trouble, config, is_logged, is_met: false, timer })
    if (is_logged) this.#log(config.id, () => logTrouble(kind, named(config), reason))
    await this.#write(config, (tx) => showTrouble(tx, config, reason))
  }

  /** Its trouble is over. Returns whether it had any. */
  #end(key: string): boolean {
    const known = this.#known.get(key)
    if (!known) return false
    this.#forget(key)
    const { config, trouble } = known
    if (known.is_logged) logEnd(trouble.kind, named(config), trouble.since)
    void this.#write(config, (tx) => resume(tx, config))
    return true
  }

  /** It has another trouble, or is gone. */
  #forget(key: string): void {
    clearTimeout(this.#known.get(key)?.timer)
    this.#known.delete(key)
  }

  async #look(key: string) {
    const known = this.#known.get(key)
    if (!known) return
    const found = await this.#check(known.config).catch((error: Error) => error)
    if (this.#known.get(key) !== known) return // it ended meanwhile
    if (found === "gone") return this.#forget(key)
    const { kind, reason, since } = known.trouble
    // What it refuses may come after the point to which a check goes.
    if (found === "fine" && kind === "unreachable") return void this.#end(key)
    if (found instanceof Error || known.is_met) {
      const why = { reason: found instanceof Error ? found.message : reason, since }
      const begin = () => logTrouble(kind, named(known.config), why.reason)
      const last = () => logLasting(kind, named(known.config), why)
      this.#log(key, known.is_logged ? last : begin)
      known.is_logged = true
    }
    known.is_met = false
    known.timer = setTimeout(() => void this.#look(key), this.#again_ms)
    known.timer.unref()
  }

  /**
   * Whether a check settles it: `unknown` where the provider cannot be asked, `gone` where the
   * configuration is another one by now. Rejects with what is wrong.
   */
  async #check(config: ConfigRow): Promise<"fine" | "unknown" | "gone"> {
    const { store, kind, providers } = this.#parts
    try {
      const rows = await routing(store.read, kind, config.project_id)
      const row = rows.find(({ id }) => id === config.id)
      if (row?.paused_until !== null || row.credentials !== config.credentials) return "gone"
      return await providers.use(row, checked)
    } catch (error) {
      if (!(error instanceof ProviderError) || error.fault !== "authentication") throw error
      await this.#write(config, (tx) => pause(tx, config, error.message))
      return "gone"
    }
  }

  #wasLogged = (key: string) =>
    monotonic() - (this.#logged_at.get(key) ?? Number.NEGATIVE_INFINITY) < this.#again_ms

  #log(key: string, write: () => void) {
    if (this.#logged_at.size >= MOST_LOGGED) this.#logged_at.clear()
    this.#logged_at.set(key, monotonic())
    write()
  }

  /** The message may be on its way: what came of it must be recorded, or it would be sent again. */
  async #write<Result>(config: ConfigRow, change: (tx: Tx) => Promise<Result>) {
    if (this.#is_closed) return undefined // our own end cut it off, which says nothing of the provider
    try {
      return await this.#parts.store.tx(change)
    } catch (error) {
      const { config_id } = named(config)
      log.error("the answer of a provider could not be stored", { config_id, error })
      return undefined
    }
  }
}

/** No other message may ask it. */
const isProbed = ({ paused_until }: ConfigRow): boolean => paused_until !== null

async function checked(provider: Provider): Promise<"fine" | "unknown"> {
  if (!provider.check) return "unknown"
  await provider.check()
  return "fine"
}

/** What it refuses may come after the login. */
const tookLogin = (provider: Provider): Promise<boolean> =>
  checked(provider).then(
    (found) => found === "fine" && provider.proves_login !== false,
    () => false,
  )
