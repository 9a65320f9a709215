import { log } from "../../core/log"
import { monotonic } from "../../core/time"
import { Waiting } from "../../messages/channel"
import type { ConfigRow } from "../../providers/configs"
import { keepReceipt } from "../../providers/receipts"
import { emailRouting, hasOwnRouting } from "../../providers/routing"
import { pause } from "../../providers/standing"
import type { Store } from "../../store/store"
import type { Adapters, Lease } from "./adapters"
import { Carrying, sortOut } from "./carrying"
import type { EmailProvider, OutgoingMail } from "./provider"
import { PoolBusy } from "./smtp-pool"

export interface CarrierParts {
  store: Store
  adapters: Adapters
  /** The instance's own, for projects that have configured none. */
  own: EmailProvider
}

/** How long the instance's own provider is left alone after it refused our login. */
const OWN_REST_MS = 60_000

const WAIT_SECONDS = 60

/** The reason of messages that wait for a provider; what ends the waiting looks for it. */
export const NO_PROVIDER_NOW =
  "No provider of this project can be used at the moment: the message waits."

/** One that may be asked; `config` is null for the instance's own. */
interface Candidate {
  config: ConfigRow | null
  lease: Lease
}

/**
 * The provider of every project: those it configured, in the order of their priority, or the
 * instance's own. The next one is asked for whom the one before was not reached, refused our
 * credentials or would not work for us; a word about a recipient or the content is final. `send`
 * rejects with Waiting where nobody can be asked: that is no attempt, and burns no message.
 */
export class Carriers implements EmailProvider {
  readonly #parts: CarrierParts
  #own_rests_until = 0

  constructor(parts: CarrierParts) {
    this.#parts = parts
  }

  get name() {
    return this.#parts.own.name
  }

  get schedule() {
    return this.#parts.own.schedule
  }

  async send(mail: OutgoingMail) {
    const { own, store } = this.#parts
    const rows = await emailRouting(store.read, mail.project_id)
    if (rows.length === 0 && monotonic() >= this.#own_rests_until) {
      // Straight on, without a word about other providers where there are none.
      const outcome = await own.send(mail)
      if ([outcome, ...outcome.others].some(({ fault }) => fault === "authentication")) {
        return this.#carry(mail, [{ config: null, lease: asLease(own) }], outcome)
      }
      return outcome
    }
    const candidates = rows.length === 0 ? [] : this.#open(rows)
    try {
      if (candidates.length === 0) throw new Waiting(NO_PROVIDER_NOW, WAIT_SECONDS)
      candidates[0]?.lease.pace()
      return await this.#carry(mail, candidates)
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  /** Only the instance's own has room to be kept; and only for projects without others. */
  async admit(message_id: string, to: string[], is_urgent: boolean, project_id: string) {
    const { own, store } = this.#parts
    if (hasOwnRouting(store.read, project_id)) return
    await own.admit?.(message_id, to, is_urgent, project_id)
  }

  dismiss(message_id: string): void {
    this.#parts.own.dismiss?.(message_id)
  }

  async close(): Promise<void> {
    await this.#parts.adapters.close()
    await this.#parts.own.close()
  }

  /** Who is not paused; those that could not be reached lately come last. */
  #open(rows: ConfigRow[]): Candidate[] {
    const { adapters } = this.#parts
    const usable = rows.filter(({ paused_until }) => paused_until === null)
    const rested = usable.filter((row) => !adapters.isResting(row))
    const resting = usable.filter((row) => adapters.isResting(row))
    return [...rested, ...resting].flatMap((config) => {
      try {
        return [{ config, lease: adapters.lease(config) }]
      } catch (error) {
        log.error("a provider cannot be opened", { config_id: config.id, error })
        return []
      }
    })
  }

  async #carry(mail: OutgoingMail, candidates: Candidate[], first?: FirstOutcome) {
    const carrying = new Carrying(mail)
    for (const [at, candidate] of candidates.entries()) {
      if (at > 0 && !hasRoom(candidate)) continue
      const outcome = first ?? (await askNext(candidate, carrying, at > 0))
      if (!outcome) continue
      const sorted = sortOut(outcome)
      carrying.take(nameOf(candidate), outcome, sorted)
      await this.#learn(mail, candidate, outcome.provider_message_id, sorted.faults)
      if (carrying.is_done) break
    }
    const result = carrying.outcome()
    if (result) return result
    throw new Waiting(NO_PROVIDER_NOW, WAIT_SECONDS)
  }

  async #learn(
    { message_id, project_id }: OutgoingMail,
    { config, lease }: Candidate,
    provider_message_id: string | undefined,
    faults: ReturnType<typeof sortOut>["faults"],
  ) {
    const refusal = faults.find(({ fault }) => fault === "authentication")
    lease.reached(!faults.some(({ fault }) => fault === "connection"))
    if (!config) {
      if (refusal) this.#restOwn(refusal.reason)
      return
    }
    const { id: config_id } = config
    if (!refusal && provider_message_id === undefined) return
    const write = this.#parts.store.tx(async (tx) => {
      if (refusal) await pause(tx, config, refusal.reason ?? "The credentials were refused.")
      if (provider_message_id !== undefined) {
        await keepReceipt(tx, { config_id, project_id, provider_message_id, message_id })
      }
    })
    // The message may be on its way: what came of it must be recorded, or it would be sent again.
    await write.catch((error) => log.error("a provider's word was not kept", { config_id, error }))
  }

  /** Nobody but the operator can mend it, and the log is where he looks. */
  #restOwn(reason: string | null) {
    if (monotonic() < this.#own_rests_until) return
    this.#own_rests_until = monotonic() + OWN_REST_MS
    const advice = "Mail waits until providers.smtp.* are right; it is tried once a minute."
    log.error(`the provider of this instance refuses its credentials. ${advice}`, { reason })
  }
}

/**
 * Undefined where the next provider has no room: what those before it said must not be lost, or who
 * has the message already would get it twice.
 */
async function askNext({ lease }: Candidate, carrying: Carrying, is_next: boolean) {
  try {
    return await lease.provider.send(carrying.rest())
  } catch (error) {
    if (!is_next) throw error
    const is_full = error instanceof Waiting || error instanceof PoolBusy
    if (!is_full) log.error("the next provider broke", { provider: lease.provider.name, error })
    return undefined
  }
}

type FirstOutcome = Awaited<ReturnType<EmailProvider["send"]>>

const nameOf = ({ config, lease }: Candidate) =>
  config ? `${config.provider} (${config.name})` : lease.provider.name

/** Failing over must not put a message off for the pace of the second. */
function hasRoom({ lease }: Candidate): boolean {
  try {
    lease.pace()
    return true
  } catch (error) {
    if (error instanceof Waiting) return false
    throw error
  }
}

const asLease = (provider: EmailProvider): Lease => ({
  provider,
  pace: () => {},
  reached: () => {},
  release: () => {},
})
