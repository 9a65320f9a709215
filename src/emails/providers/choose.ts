import { log } from "../../core/log"
import { INSTANCE } from "../../providers/callback-token"
import type { ConfigRow } from "../../providers/configs"
import type { Fault, Outcome } from "../../providers/provider"
import { keepReceipt } from "../../providers/receipts"
import { instanceRefusal, refusalFor, refusalOf } from "../../providers/refusals"
import { emailRouting, isUsable } from "../../providers/routing"
import type { Store } from "../../store/store"
import { type ProviderPermit, type ProviderPermits, UNLIMITED } from "../provider-permits"
import type { Adapters } from "./adapters"
import {
  askNext,
  asLease,
  type Candidate,
  type FirstOutcome,
  firstOf,
  hasRoom,
  held,
  nameOf,
  nobody,
} from "./candidates"
import { Carrying, type Sorted, sortOut } from "./carrying"
import type { EmailProvider, OutgoingMail } from "./provider"
import { Standings } from "./standings"

export interface CarrierParts {
  store: Store
  adapters: Adapters
  /** The instance's own, for projects that have configured none. */
  own: EmailProvider
  /** Limits what the providers of projects hold of the deliveries of this instance. */
  permits: ProviderPermits
  /** How often trouble of a provider that lasts is told of; a minute without it. */
  again_ms?: number
}

interface Wish {
  message_id: string
  to: string[]
  is_urgent: boolean
  project_id: string
}

interface Admitted {
  config_id: string | undefined
  /** Where it has permits of its own. */
  provider?: EmailProvider
  permit: ProviderPermit
}

/**
 * The provider of every project: those it configured, in the order of their priority, or the
 * instance's own. The next one is asked for whom the one before was not reached, refused our
 * credentials or would not work for us; a word about a recipient or the content is final. `send`
 * rejects with DeferredError where nobody can be asked: that is no attempt, and burns no message.
 */
export class Carriers implements EmailProvider {
  /** What is known of all of them. */
  readonly standings: Standings
  readonly #parts: CarrierParts
  /** The permits of a message, from `admit` to `dismiss`. */
  readonly #admitted = new Map<string, Admitted>()

  constructor(parts: CarrierParts) {
    this.#parts = parts
    this.standings = new Standings(parts)
  }

  get name() {
    return this.#parts.own.name
  }

  get schedule() {
    return this.#parts.own.schedule
  }

  async send(mail: OutgoingMail) {
    const rows = await emailRouting(this.#parts.store.read, mail.project_id)
    if (rows.length === 0) return this.#sendByOwn(mail)
    const candidates = this.#open(usable(rows, mail))
    try {
      const first = firstOf(candidates)
      const admitted = this.#admitted.get(mail.message_id)
      if (admitted?.config_id !== first.config?.id) first.lease.pace()
      admitted?.permit.begin()
      const outcome = await this.#carry(mail, candidates)
      admitted?.permit.end(outcome)
      return outcome
    } catch (error) {
      this.#admitted.get(mail.message_id)?.permit.end(undefined)
      throw error
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  /** Without a word about other providers where there are none. */
  async #sendByOwn(mail: OutgoingMail) {
    await this.#demandOwn(mail)
    const own = { config: null, lease: asLease(this.#parts.own) }
    const outcome = await this.#parts.own.send(mail)
    const sorted = sortOut(outcome)
    if (sorted.faults.some(isLogin)) return this.#carry(mail, [own], outcome)
    await this.#learn(mail, own, outcome.provider_message_id, sorted)
    return outcome
  }

  /** Rejects with DeferredError while it refuses our login, unless this message is to ask it. */
  async #demandOwn({ message_id, project_id }: Pick<OutgoingMail, "message_id" | "project_id">) {
    const { read } = this.#parts.store
    const recent = await instanceRefusal(read, { recent: true })
    const refusal = recent && (await instanceRefusal(read))
    if (refusal && refusal.probe_message_id !== message_id) throw held(project_id, refusal)
  }

  /**
   * Composing is dear: who is first and paused, resting, at its pace or without room says so here, or
   * a long queue that cannot leave would be composed over and over.
   */
  async admit(message_id: string, to: string[], is_urgent: boolean, project_id: string) {
    const { own, store, permits } = this.#parts
    permits.saw(project_id)
    const recent = await emailRouting(store.read, project_id, { recent: true })
    const rows = isUsable(recent) ? recent : await emailRouting(store.read, project_id)
    const wish = { message_id, to, is_urgent, project_id }
    if (rows.length > 0) return this.#admitBy(usable(rows, wish), wish)
    await this.#demandOwn(wish)
    await own.admit?.(message_id, to, is_urgent, project_id)
  }

  async #admitBy(rows: ConfigRow[], { message_id, to, is_urgent, project_id }: Wish) {
    if (this.#admitted.has(message_id)) return
    const candidates = this.#open(rows)
    try {
      const { config, lease } = firstOf(candidates)
      const permit = config
        ? await this.#parts.permits.acquire(config, { is_urgent, project_id })
        : UNLIMITED
      const { provider } = lease
      this.#admitted.set(message_id, { config_id: config?.id, permit })
      await provider.admit?.(message_id, to, is_urgent, project_id)
      this.#admitted.set(message_id, { config_id: config?.id, provider, permit })
      lease.pace(is_urgent)
    } catch (error) {
      this.dismiss(message_id)
      throw error
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  dismiss(message_id: string): void {
    this.#parts.own.dismiss?.(message_id)
    const admitted = this.#admitted.get(message_id)
    admitted?.provider?.dismiss?.(message_id)
    admitted?.permit.release()
    this.#admitted.delete(message_id)
  }

  async close(): Promise<void> {
    this.standings.close()
    await this.#parts.adapters.close()
    await this.#parts.own.close()
  }

  /** Those that could not be reached lately come last. */
  #open(rows: ConfigRow[]): Candidate[] {
    const { adapters } = this.#parts
    const rested = rows.filter((row) => !adapters.isResting(row))
    const resting = rows.filter((row) => adapters.isResting(row))
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
    let is_probe = false
    for (const [at, candidate] of candidates.entries()) {
      if (at > 0 && !hasRoom(candidate)) continue
      const outcome = first ?? (await askNext(candidate, carrying, at > 0))
      if (!outcome) continue
      const sorted = sortOut(outcome)
      carrying.take(nameOf(candidate), outcome, sorted)
      const has_asked = await this.#learn(mail, candidate, outcome.provider_message_id, sorted)
      is_probe ||= has_asked
      if (carrying.is_done) break
    }
    const outcome = carrying.outcome()
    return carrying.is_refused ? this.#refused(mail, outcome, is_probe) : outcome
  }

  /** Only the message that asked for all has had an attempt; those refused beside it wait as if untried. */
  async #refused({ project_id }: OutgoingMail, outcome: Outcome, is_probe: boolean) {
    const refusal = await refusalFor(this.#parts.store.read, project_id)
    if (!refusal) throw nobody()
    const waiting = held(project_id, refusal)
    if (!is_probe || waiting.by === undefined) throw waiting
    return { ...outcome, login_refused: { reason: waiting.message, by: waiting.by } }
  }

  /** What an answer tells of the provider itself. Returns whether it was the message that asked for all. */
  async #learn(
    mail: OutgoingMail,
    candidate: Candidate,
    provider_message_id: string | undefined,
    { final, faults }: Sorted,
  ): Promise<boolean> {
    const { config, lease } = candidate
    const refusal = faults.find(isLogin)
    const is_away = final.every(({ held }) => held) // of several domains one may be away
    lease.reached(!is_away || !faults.some(({ fault }) => fault === "connection"))
    const { standings } = this
    const has_asked = refusal
      ? await standings.refused(mail.message_id, config, refusal.reason)
      : await standings.heard(mail.message_id, candidate, { faults, has_worked: !is_away })
    await this.#keepReceipt(mail, config?.id ?? INSTANCE, provider_message_id)
    return has_asked
  }

  async #keepReceipt(mail: OutgoingMail, config_id: string, provider_message_id?: string) {
    if (provider_message_id === undefined) return
    const { message_id, project_id } = mail
    const receipt = { config_id, project_id, provider_message_id, message_id }
    // The message is on its way: what came of it must be recorded, or it would be sent again.
    const written = this.#parts.store.tx((tx) => keepReceipt(tx, receipt))
    await written.catch((error) =>
      log.error("the receipt of a provider could not be stored", { config_id, error }),
    )
  }
}

const isLogin = ({ fault }: { fault?: Fault | undefined }) => fault === "authentication"

/**
 * The providers that may be asked for a message: those that are not paused, and one that waits to be asked by this
 * very message. Throws DeferredError where there is none.
 */
function usable(rows: ConfigRow[], mail: Pick<OutgoingMail, "message_id" | "project_id">) {
  const open = rows.filter(
    ({ paused_until, probe_message_id }) =>
      paused_until === null || probe_message_id === mail.message_id,
  )
  const refusal = open.length > 0 ? undefined : refusalOf(rows)
  if (refusal) throw held(mail.project_id, refusal)
  return open
}
