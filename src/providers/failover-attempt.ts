import type { Fault, Outcome, OutgoingMessage, RecipientOutcome } from "./provider"

interface Faulty extends RecipientOutcome {
  fault: Fault
}

/** An answer: what is final, and the recipients that another provider may reach. */
export interface SortedAnswer {
  final: RecipientOutcome[]
  faults: Faulty[]
}

export function sortAnswer(outcome: Outcome): SortedAnswer {
  const sorted: SortedAnswer = { final: [], faults: [] }
  for (const one of [first(outcome), ...outcome.others]) {
    if (one.fault) sorted.faults.push({ ...one, fault: one.fault })
    else sorted.final.push(one)
  }
  return sorted
}

function first(outcome: Outcome): RecipientOutcome {
  const { provider: _, others: __, transcript: ___, schedule: ____, ...one } = outcome
  const { provider_message_id: _____, ...plain } = one
  return plain
}

/** One attempt of a message over several providers: collects each recipient's last answer. */
export class FailoverAttempt<Message extends OutgoingMessage> {
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
    return { ...this.#message, to: this.#open }
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
    for (const one of final) this.#final.set(one.email, [one, outcome])
    for (const one of faults) {
      this.#faults.set(one.email, [...(this.#faults.get(one.email) ?? []), [one, outcome]])
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
