import { log } from "../../core/log"
import { monotonic } from "../../core/time"
import { INSTANCE } from "../../providers/callback-token"
import type { ConfigRow } from "../../providers/configs"
import { keepReceipt } from "../../providers/receipts"
import { emailRouting, isUsable } from "../../providers/routing"
import { pause } from "../../providers/standing"
import type { Store, Tx } from "../../store/store"
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
import { FREE, type Room, type Rooms } from "./rooms"

export interface CarrierParts {
  store: Store
  adapters: Adapters
  /** The instance's own, for projects that have configured none. */
  own: EmailProvider
  /** What the others may hold of the deliveries of this instance. */
  rooms: Rooms
}

/** How long the instance's own provider is left alone after it refused our login. */
const OWN_REST_MS = 60_000

interface Wish {
  message_id: string
  to: string[]
  is_urgent: boolean
  project_id: string
}

interface Admitted {
  config_id: string | undefined
  /** Where it keeps room of its own. */
  provider?: EmailProvider
  room: Room
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
  /** Who has room for a message, from `admit` to `dismiss`. */
  readonly #admitted = new Map<string, Admitted>()

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
      await this.#keepReceipt(mail, INSTANCE, outcome.provider_message_id)
      if ([outcome, ...outcome.others].some(({ fault }) => fault === "authentication")) {
        return this.#carry(mail, [{ config: null, lease: asLease(own) }], outcome)
      }
      return outcome
    }
    if (!isUsable(rows)) throw held(mail.project_id)
    const candidates = this.#open(rows)
    try {
      const first = firstOf(candidates)
      const admitted = this.#admitted.get(mail.message_id)
      if (admitted?.config_id !== first.config?.id) first.lease.pace()
      admitted?.room.begin()
      const outcome = await this.#carry(mail, candidates)
      admitted?.room.end(outcome)
      return outcome
    } catch (error) {
      this.#admitted.get(mail.message_id)?.room.end(undefined)
      throw error
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  /**
   * Composing is dear: who is first and paused, resting, at its pace or without room says so here, or
   * a long queue that cannot leave would be composed over and over.
   */
  async admit(message_id: string, to: string[], is_urgent: boolean, project_id: string) {
    const { own, store, rooms } = this.#parts
    rooms.saw(project_id)
    const recent = await emailRouting(store.read, project_id, { recent: true })
    const rows = isUsable(recent) ? recent : await emailRouting(store.read, project_id)
    if (!isUsable(rows)) throw held(project_id)
    if (rows.length > 0) return this.#admitBy(rows, { message_id, to, is_urgent, project_id })
    if (monotonic() < this.#own_rests_until) throw nobody()
    await own.admit?.(message_id, to, is_urgent, project_id)
  }

  async #admitBy(rows: ConfigRow[], { message_id, to, is_urgent, project_id }: Wish) {
    if (this.#admitted.has(message_id)) return
    const candidates = this.#open(rows)
    try {
      const { config, lease } = firstOf(candidates)
      const room = config ? await this.#parts.rooms.enter(config, { is_urgent, project_id }) : FREE
      const { provider } = lease
      this.#admitted.set(message_id, { config_id: config?.id, room })
      await provider.admit?.(message_id, to, is_urgent, project_id)
      this.#admitted.set(message_id, { config_id: config?.id, provider, room })
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
    admitted?.room.leave()
    this.#admitted.delete(message_id)
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
      await this.#learn(mail, candidate, outcome.provider_message_id, sorted)
      if (carrying.is_done) break
    }
    const result = carrying.outcome()
    if (result) return result
    const rows = await emailRouting(this.#parts.store.read, mail.project_id)
    throw isUsable(rows) ? nobody() : held(mail.project_id)
  }

  async #learn(
    mail: OutgoingMail,
    { config, lease }: Candidate,
    provider_message_id: string | undefined,
    { final, faults }: Sorted,
  ) {
    const refusal = faults.find(({ fault }) => fault === "authentication")
    const is_away = final.every(({ held }) => held) // of several domains one may be away
    lease.reached(!is_away || !faults.some(({ fault }) => fault === "connection"))
    if (!config) {
      if (refusal) this.#restOwn(refusal.reason)
      return
    }
    if (refusal) {
      const why = refusal.reason ?? "The credentials were refused."
      await this.#write(config.id, (tx) => pause(tx, config, why))
    }
    await this.#keepReceipt(mail, config.id, provider_message_id)
  }

  async #keepReceipt(mail: OutgoingMail, config_id: string, provider_message_id?: string) {
    if (provider_message_id === undefined) return
    const { message_id, project_id } = mail
    const receipt = { config_id, project_id, provider_message_id, message_id }
    await this.#write(config_id, (tx) => keepReceipt(tx, receipt))
  }

  /** The message may be on its way: what came of it must be recorded, or it would be sent again. */
  async #write(config_id: string, change: (tx: Tx) => Promise<void>) {
    const written = this.#parts.store.tx(change)
    await written.catch((error) =>
      log.error("a provider's word was not kept", { config_id, error }),
    )
  }

  /** Nobody but the operator can mend it, and the log is where he looks. */
  #restOwn(reason: string | null) {
    if (monotonic() < this.#own_rests_until) return
    this.#own_rests_until = monotonic() + OWN_REST_MS
    const { name } = this.#parts.own
    const advice = `Mail waits until providers.${name}.* are right; it is tried once a minute.`
    log.error(`the provider of this instance refuses its credentials. ${advice}`, { reason })
  }
}
