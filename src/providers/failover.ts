import { log } from "../core/log"
import { DeferredError } from "../jobs/work-item"
import { shownId } from "./callbacks"
import { type MonitorParts, ProviderMonitor } from "./monitor"
import type { ProviderLease } from "./open-providers"
import {
  type AskedOnly,
  type Fault,
  NO_REPLY,
  type Outcome,
  type OutgoingMessage,
  type Provider,
  ProviderBusyError,
  type RecipientOutcome,
} from "./provider"
import { heldBy, isOwn, refusalFor, routing, usable } from "./routing"
import { type ConfigRow, INSTANCE } from "./tables"

const WAIT_SECONDS = 60
const NO_PROVIDER_NOW = "No provider of this project can be used at the moment. The message waits."
const NONE_TAKES_IT =
  "No provider of this project may deliver to this recipient: their settings allow others only."

/** Of one message: its share of what the instance delivers at once. */
export interface ProviderPermit {
  /** The attempt begins. */
  begin(): void
  /** The attempt is over, with what came of it, or with nothing where it broke. */
  end(outcome: Outcome | undefined): void
  /** Gives the permit back. An attempt that never began says nothing about the provider. */
  release(): void
}

/** Limits what the providers of projects may hold of an instance's deliveries. */
export interface PermitSource {
  /** Hears which project has messages, whichever provider is to deliver them. */
  readonly limit: { saw(project_id: string): void }
  /** Rejects with DeferredError where none is free. */
  acquire(
    config: ConfigRow,
    request: { is_urgent: boolean; project_id: string },
  ): Promise<ProviderPermit>
}

const UNLIMITED: ProviderPermit = { begin: () => {}, end: () => {}, release: () => {} }

export interface FailoverParts<Message extends OutgoingMessage> extends MonitorParts {
  permits?: PermitSource
  /** How a provider is handed a message; without it by its `send`. */
  handOver?: (provider: Provider<Message>, message: Message) => Promise<Outcome>
  /** Faults that count for the breaker. Without it: that nothing was reached. */
  breaking?: readonly Fault[]
}

const UNREACHED: readonly Fault[] = ["connection"]

interface Admitted {
  config_id: string
  /** The provider that keeps a permit of its own. */
  provider?: Provider
  permit: ProviderPermit
}

/** A provider that may be asked. */
interface ProviderCandidate {
  config: ConfigRow
  lease: ProviderLease
}

/**
 * One channel's providers as one: those that a project configured, in the order of their priority, or
 * the instance's own. The next one is asked for the recipients that are left when the one before was not reached,
 * refused our credentials or would not work for us; a word about a recipient or the content is final.
 * A provider with an open breaker is asked last. `send` rejects with DeferredError where no provider
 * can be asked: that is no attempt, and burns no message.
 */
export class Failover<Message extends OutgoingMessage> implements Provider<Message> {
  readonly monitor: ProviderMonitor
  readonly #parts: FailoverParts<Message>
  /** The permits of messages, from `admit` to `dismiss`. */
  readonly #admitted = new Map<string, Admitted>()

  constructor(parts: FailoverParts<Message>) {
    this.#parts = parts
    this.monitor = new ProviderMonitor(parts)
  }

  /** Of the instance's own provider. */
  get name(): string {
    return this.#parts.providers.ownName(this.#parts.kind) ?? "none"
  }

  /** An answer brings its own. */
  readonly schedule = () => undefined

  async send(message: Message): Promise<Outcome> {
    const { project_id } = message
    const rows = await this.#routing(project_id, { recent_own: true }, message)
    const open = usable(rows, message)
    const { candidates, passed_over } = this.#open(open, message)
    const admitted = this.#admitted.get(message.message_id)
    try {
      if (passed_over > 0 && passed_over === rows.length) return excluded(message)
      const { config, lease } = firstOf(candidates)
      if (admitted?.config_id !== config.id) lease.pace()
      admitted?.permit.begin()
      const outcome = await this.#attempt(message, candidates)
      admitted?.permit.end(outcome)
      return outcome
    } catch (error) {
      admitted?.permit.end(undefined)
      throw error
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  /**
   * Composing is dear: a first provider that is paused, at its rate limit or without a permit says so
   * here, or a long queue that cannot leave would be composed over and over.
   */
  async admit(
    message_id: string,
    to: string[],
    is_urgent: boolean,
    project_id: string,
    only: AskedOnly = {},
  ) {
    this.#parts.permits?.limit.saw(project_id)
    const rows = await this.#routing(project_id, { recent: true }, only)
    const open = usable(rows, { message_id, project_id, ...only })
    if (this.#admitted.has(message_id)) return
    const { candidates, passed_over } = this.#open(open, { message_id, project_id, to })
    try {
      if (passed_over > 0 && passed_over === rows.length) return // `send` says so
      const { config, lease } = firstOf(candidates)
      const { provider, is_shared } = lease
      const is_limited = !is_shared && config.project_id !== INSTANCE
      const asking = { is_urgent, project_id }
      const entered = is_limited && (await this.#parts.permits?.acquire(config, asking))
      const permit = entered || UNLIMITED
      this.#admitted.set(message_id, { config_id: config.id, permit })
      await provider.admit?.(message_id, to, is_urgent, project_id)
      this.#admitted.set(message_id, { config_id: config.id, permit, provider })
      lease.pace(is_urgent)
    } catch (error) {
      this.dismiss(message_id)
      throw error
    } finally {
      for (const { lease } of candidates) lease.release()
    }
  }

  dismiss(message_id: string): void {
    const admitted = this.#admitted.get(message_id)
    admitted?.provider?.dismiss?.(message_id)
    admitted?.permit.release()
    this.#admitted.delete(message_id)
  }

  async close(): Promise<void> {
    this.monitor.close()
    await this.#parts.providers.close()
  }

  async #routing(
    project_id: string,
    options: Parameters<typeof routing>[3],
    { config_id, service }: AskedOnly,
  ): Promise<ConfigRow[]> {
    const { store, kind } = this.#parts
    const rows = await routing(store.read, kind, project_id, { ...options, service })
    return config_id === undefined ? rows : rows.filter(({ id }) => id === config_id)
  }

  /** Those with an open breaker come last. Those that may not deliver the message are passed over. */
  #open(rows: ConfigRow[], message: OutgoingMessage) {
    const { providers } = this.#parts
    const [ready, cooling]: [ProviderCandidate[], ProviderCandidate[]] = [[], []]
    let passed_over = 0
    for (const config of rows) {
      try {
        const list = providers.isCoolingDown(config) ? cooling : ready
        const lease = providers.lease(config)
        if (lease.provider.takes?.(message) ?? true) list.push({ config, lease })
        else {
          lease.release()
          passed_over++
        }
      } catch (error) {
        log.error("a provider cannot be opened", { config_id: shownId(config), error })
      }
    }
    return { candidates: [...ready, ...cooling], passed_over }
  }

  async #attempt(message: Message, candidates: ProviderCandidate[]): Promise<Outcome> {
    const attempt = new FailoverAttempt(message)
    let is_probe = false
    for (const [at, candidate] of candidates.entries()) {
      if (at > 0 && !hasRoom(candidate)) continue
      const answer = await this.#askNext(candidate, attempt.rest(), at > 0)
      if (!answer) continue
      answer.config_id = candidate.config.id
      const sorted = sortAnswer(answer)
      const has_asked = await this.#learn(message, candidate, answer, sorted)
      is_probe ||= has_asked
      // Usually the first one has a final word about every recipient.
      if (at === 0 && sorted.final.length === message.to.length) return answer
      attempt.add(nameOf(candidate), answer, sorted)
      if (attempt.is_done) break
    }
    const outcome = attempt.outcome()
    return attempt.is_refused ? this.#refused(message, outcome, is_probe) : outcome
  }

  /**
   * Undefined where the next provider has no room: what those before it said must not be lost, or a recipient with the message would get it twice.
   */
  async #askNext({ lease }: ProviderCandidate, message: Message, is_next: boolean) {
    const { handOver = (provider, one) => provider.send(one) } = this.#parts
    try {
      return await handOver(lease.provider, message)
    } catch (error) {
      if (!is_next) throw error
      if (!(error instanceof DeferredError || error instanceof ProviderBusyError)) {
        log.error("the next provider failed unexpectedly", { provider: lease.provider.name, error })
      }
      return undefined
    }
  }

  /** Only the message that asked for all has had an attempt; those refused beside it wait as if untried. */
  async #refused(message: Message, outcome: Outcome, is_probe: boolean) {
    const { store, kind } = this.#parts
    const refusal = await refusalFor(store.read, kind, message.project_id, message.service)
    if (!refusal) throw noProvider()
    const waiting = heldBy(message, kind, refusal)
    if (!is_probe || waiting.by === undefined) throw waiting
    return { ...outcome, login_refused: { reason: waiting.message, by: waiting.by } }
  }

  /** What an answer tells of the provider itself. Returns whether it was the message that asked for all. */
  async #learn(
    message: Message,
    { config, lease }: ProviderCandidate,
    { return_path }: Outcome,
    { final, faults }: SortedAnswer,
  ): Promise<boolean> {
    const refusal = faults.find(({ fault }) => fault === "authentication")
    const is_silent = final.some(({ is_unanswered }) => is_unanswered)
    const is_away = is_silent || final.every(({ held }) => held) // of several domains one may be away
    const { breaking = UNREACHED } = this.#parts
    const is_broken = is_silent || faults.some(({ fault }) => breaking.includes(fault))
    lease.reached(!is_away || !is_broken)
    const { monitor } = this
    const had_trouble = config.status === "error" || monitor.troubled.has(config.id)
    let has_asked = false
    if (refusal) has_asked = await monitor.refused(message.message_id, config, refusal.reason)
    else if (is_away) await monitor.failed(config, lease, faults)
    else if (had_trouble) await monitor.worked(config)
    if (return_path) await monitor.heardReturnPath(config, return_path)
    return has_asked
  }
}

/** The providers changed while the message was on its way, so it is not known which one takes it. */
const noProvider = () => new DeferredError(NO_PROVIDER_NOW, WAIT_SECONDS)

/** Every provider of the project is set up for other recipients. */
function excluded({ to }: OutgoingMessage): Outcome {
  const failed = { status: "failed", code: "validation_error", reason: NONE_TAKES_IT } as const
  const [first, ...others] = to.map((address) => ({
    ...{ ...failed, address, bounce_subtype: null, reply: NO_REPLY },
  }))
  if (!first) throw new TypeError("the message has no recipient")
  return { ...first, others, provider: null, transcript: [], schedule: () => undefined }
}

/** Throws DeferredError where none could be opened. */
function firstOf([first]: ProviderCandidate[]): ProviderCandidate {
  if (!first) throw noProvider()
  return first
}

const nameOf = ({ config, lease }: ProviderCandidate) =>
  isOwn([config]) ? lease.provider.name : `${config.provider} (${config.name})`

/** Failing over must not defer a message for the rate limit of the second provider. */
function hasRoom({ lease }: ProviderCandidate): boolean {
  try {
    lease.pace()
    return true
  } catch (error) {
    if (error instanceof DeferredError) return false
    throw error
  }
}

interface Faulty extends RecipientOutcome {
  fault: Fault
}

/** An answer: what is final, and the recipients that another provider may reach. */
interface SortedAnswer {
  final: RecipientOutcome[]
  faults: Faulty[]
}

function sortAnswer(outcome: Outcome): SortedAnswer {
  const sorted: SortedAnswer = { final: [], faults: [] }
  for (const one of [outcome, ...outcome.others]) {
    if (one.fault) sorted.faults.push({ ...plain(one), fault: one.fault })
    else sorted.final.push(one)
  }
  return sorted
}

/** Without what an answer says of the attempt. */
function plain(one: RecipientOutcome | Outcome): RecipientOutcome {
  if (!("others" in one)) return one
  const { provider: _, others: __, transcript: ___, schedule: ____, ...recipient } = one
  return recipient
}

/** One attempt of a message over several providers: collects each recipient's last answer. */
class FailoverAttempt<Message extends OutgoingMessage> {
  readonly #message: Message
  readonly #final = new Map<string, [RecipientOutcome, Outcome]>()
  readonly #faults = new Map<string, [Faulty, Outcome][]>()
  readonly #transcript: string[] = []
  #asked = 0

  constructor(message: Message) {
    this.#message = message
  }

  /** The message for the recipients without a final answer. */
  rest(): Message {
    return this.#asked === 0 ? this.#message : { ...this.#message, to: this.#open }
  }

  get is_done(): boolean {
    return this.#open.length === 0
  }

  get #open() {
    return this.#message.to.filter((email) => !this.#final.has(email))
  }

  add(name: string, outcome: Outcome, { final, faults }: SortedAnswer) {
    this.#asked++
    if (this.#asked > 1) this.#transcript.push(`* trying the next provider: ${name}`)
    this.#transcript.push(...outcome.transcript)
    for (const one of final) this.#final.set(one.address, [plain(one), outcome])
    for (const one of faults) {
      this.#faults.set(one.address, [...(this.#faults.get(one.address) ?? []), [one, outcome]])
    }
    const [fault] = faults
    if (this.#asked > 1 || !fault) return
    const reason = fault.reason ?? "no reason was given"
    this.#transcript.push(`* ${name}: ${fault.fault}: ${reason}`)
  }

  /** Every provider refused our login, so nothing was said of the message. */
  get is_refused(): boolean {
    if (this.#final.size > 0) return false
    return this.#message.to.every((email) => this.#last(email)[0].fault === "authentication")
  }

  outcome(): Outcome {
    const settled = this.#message.to.map((email) => this.#final.get(email) ?? this.#last(email))
    const [[first, whole] = [], ...others] = settled
    if (!first || !whole) throw new TypeError("the message has no recipient")
    return {
      ...retried(first),
      others: others.map(([one]) => retried(one)),
      provider: whole.provider,
      transcript: this.#transcript,
      schedule: whole.schedule,
    }
  }

  /** A recipient that one provider could not try is tried again: another's refusal is not final then. */
  #last(email: string): [RecipientOutcome, Outcome] {
    const all = this.#faults.get(email) ?? []
    const found = all.find(([{ status }]) => status === "retry") ?? all.at(-1)
    if (!found) throw new Error(`no provider answered for ${email}`)
    return found
  }
}

/** Refused credentials are mended, and burn nothing meanwhile. */
const retried = (one: RecipientOutcome): RecipientOutcome =>
  one.fault === "authentication" && one.status === "failed"
    ? { ...one, status: "retry", code: null }
    : one
