import { log } from "../../core/log"
import { INSTANCE } from "../../providers/callback-token"
import type { ConfigRow } from "../../providers/configs"
import {
  instanceRefusedAgain,
  pauseInstance,
  resumeInstance,
} from "../../providers/instance-standing"
import type { RecipientOutcome } from "../../providers/provider"
import { instanceRefusal } from "../../providers/refusals"
import { emailRouting } from "../../providers/routing"
import { pause, refusedAgain, resume, showTrouble } from "../../providers/standing"
import type { Store, Tx } from "../../store/store"
import type { Adapters } from "./adapters"
import type { Candidate } from "./candidates"
import { type EmailProvider, ProviderError } from "./provider"
import { type TroubleLine, Troubles } from "./troubles"

export interface StandingParts {
  store: Store
  adapters: Adapters
  own: EmailProvider
  /** How often trouble that lasts is told of; a minute without it. */
  again_ms?: number
}

interface Heard {
  faults: RecipientOutcome[]
  /** It gave its word about the message. */
  has_worked: boolean
}

const NO_WORDS = "It gave no reason."

/**
 * What messages find out about the providers that carry them. A refused login pauses a provider for all
 * nodes, in the database; other trouble is this process's to tell of, and pauses nothing.
 */
export class Standings {
  readonly #parts: StandingParts
  readonly #troubles: Troubles

  constructor(parts: StandingParts) {
    this.#parts = parts
    this.#troubles = new Troubles(parts.again_ms === undefined ? {} : { again_ms: parts.again_ms })
  }

  /**
   * A provider (null: the instance's own) refused our login. Returns whether this message had asked for
   * all: it is the probe, or the first one that was refused.
   */
  async refused(message_id: string, config: ConfigRow | null, words: string | null) {
    const why = words ?? NO_WORDS
    this.#troubles.forget(keyOf(config))
    const probe = config ?? (await instanceRefusal(this.#parts.store.read))
    if (probe?.probe_message_id === message_id) {
      await this.#write(config, (tx) =>
        config ? refusedAgain(tx, config, why) : instanceRefusedAgain(tx, why),
      )
      return true
    }
    return (await this.#write(config, (tx) => this.#pause(tx, config, why))) ?? false
  }

  /** A provider answered, or did not, but did not refuse our login. Returns false: see `refused`. */
  async heard(message_id: string, { config, lease }: Candidate, { faults, has_worked }: Heard) {
    const is_probe = await this.#isProbe(message_id, config)
    if (has_worked) {
      const was_known = this.#troubles.worked(keyOf(config))
      const is_marked = config?.status === "error" && !was_known
      if (is_probe || is_marked) await this.#write(config, (tx) => resumeAny(tx, config))
      return false
    }
    const [first] = faults
    if (!first || lease.provider.name === "direct") return false // a recipient's host is no provider
    const is_away = first.fault === "connection"
    if (is_probe && !is_away && (await tookLogin(lease.provider))) {
      await this.#write(config, (tx) => resumeAny(tx, config))
    }
    if (!is_probe) await this.#meet(config, is_away, first.reason ?? NO_WORDS)
    return false
  }

  /** Providers that this process has trouble with now, refused logins aside. */
  troubles(): TroubleLine[] {
    return this.#troubles.list()
  }

  close(): void {
    this.#troubles.close()
  }

  #pause = (tx: Tx, config: ConfigRow | null, why: string) =>
    config ? pause(tx, config, why) : pauseInstance(tx, this.#parts.own.name, why)

  async #isProbe(message_id: string, config: ConfigRow | null): Promise<boolean> {
    if (config) return config.paused_until !== null // nobody else may ask it
    const refusal = await instanceRefusal(this.#parts.store.read, { recent: true })
    return refusal !== undefined && refusal.probe_message_id === message_id
  }

  async #meet(config: ConfigRow | null, is_away: boolean, reason: string) {
    const { own } = this.#parts
    const named = config
      ? { provider: config.provider, config_id: config.id, project_id: config.project_id }
      : { provider: own.name, config_id: INSTANCE }
    const begins = this.#troubles.met({
      kind: is_away ? "unreachable" : "refuses_us",
      named,
      reason,
      check: () => this.#check(config),
      onEnd: () => void (config && this.#write(config, (tx) => resume(tx, config))),
    })
    if (begins && config) await this.#write(config, (tx) => showTrouble(tx, config, reason))
  }

  /** Rejects with what is wrong. */
  async #check(config: ConfigRow | null): Promise<"fine" | "unknown" | "gone"> {
    try {
      if (!config) return await checked(this.#parts.own)
      const rows = await emailRouting(this.#parts.store.read, config.project_id)
      const row = rows.find(({ id }) => id === config.id)
      if (row?.paused_until !== null || row.credentials !== config.credentials) return "gone"
      const lease = this.#parts.adapters.lease(row)
      try {
        return await checked(lease.provider)
      } finally {
        lease.release()
      }
    } catch (error) {
      if (!(error instanceof ProviderError) || error.fault !== "authentication") throw error
      await this.#write(config, (tx) => this.#pause(tx, config, error.message))
      return "gone"
    }
  }

  /** The message may be on its way: what came of it must be recorded, or it would be sent again. */
  async #write<Result>(config: ConfigRow | null, change: (tx: Tx) => Promise<Result>) {
    try {
      return await this.#parts.store.tx(change)
    } catch (error) {
      log.error("the answer of a provider could not be stored", { config_id: keyOf(config), error })
      return undefined
    }
  }
}

const keyOf = (config: ConfigRow | null) => config?.id ?? INSTANCE

const resumeAny = (tx: Tx, config: ConfigRow | null) =>
  config ? resume(tx, config) : resumeInstance(tx)

async function checked(provider: EmailProvider): Promise<"fine" | "unknown"> {
  if (!provider.check) return "unknown"
  await provider.check()
  return "fine"
}

/** What it refuses may come after the login. */
const tookLogin = (provider: EmailProvider): Promise<boolean> =>
  checked(provider).then(
    (found) => found === "fine",
    () => false,
  )
