import type { Fault, Outcome, RecipientOutcome } from "../../providers/provider"
import type { OutgoingMail } from "./provider"

interface Faulty extends RecipientOutcome {
  fault: Fault
}

export interface Sorted {
  final: RecipientOutcome[]
  /** For whom another provider may do better. */
  faults: Faulty[]
}

/** What a provider said for good, and what says more about itself or the way to it. */
export function sortOut(outcome: Outcome): Sorted {
  const sorted: Sorted = { final: [], faults: [] }
  for (const one of [own(outcome), ...outcome.others]) {
    if (one.fault) sorted.faults.push({ ...one, fault: one.fault })
    else sorted.final.push(one)
  }
  return sorted
}

function own(outcome: Outcome): RecipientOutcome {
  const { provider: _, others: __, transcript: ___, schedule: ____, ...one } = outcome
  const { provider_message_id: _____, ...plain } = one
  return plain
}

/** One attempt, on its way from provider to provider. */
export class Carrying {
  readonly #mail: OutgoingMail
  readonly #final = new Map<string, [RecipientOutcome, Outcome]>()
  readonly #faults = new Map<string, [Faulty, Outcome][]>()
  readonly #transcript: string[] = []
  #asked = 0

  constructor(mail: OutgoingMail) {
    this.#mail = mail
  }

  /** The mail for who has no last word yet. */
  rest(): OutgoingMail {
    return { ...this.#mail, to: this.#open }
  }

  get is_done(): boolean {
    return this.#open.length === 0
  }

  get #open() {
    return this.#mail.to.filter((email) => !this.#final.has(email))
  }

  take(name: string, outcome: Outcome, { final, faults }: Sorted) {
    this.#asked++
    if (this.#asked > 1) this.#transcript.push(`* trying the next provider: ${name}`)
    this.#transcript.push(...outcome.transcript)
    for (const one of final) this.#final.set(one.email, [one, outcome])
    for (const one of faults) {
      this.#faults.set(one.email, [...(this.#faults.get(one.email) ?? []), [one, outcome]])
      if (this.#asked === 1 && one === faults[0]) this.#note(name, one)
    }
  }

  #note(name: string, { fault, reason }: Faulty) {
    this.#transcript.push(`* ${name}: ${fault}: ${reason ?? "no reason was given"}`)
  }

  /** Nobody took our login, so nothing was said of the message. */
  get is_refused(): boolean {
    if (this.#final.size > 0) return false
    return this.#mail.to.every((email) => this.#last(email)[0].fault === "authentication")
  }

  outcome(): Outcome {
    const settled = this.#mail.to.map((email) => this.#final.get(email) ?? this.#last(email))
    const [[first, whole] = [], ...others] = settled
    if (!first || !whole) throw new TypeError("the mail has no recipient")
    return {
      ...waiting(first),
      others: others.map(([one]) => waiting(one)),
      provider: whole.provider,
      transcript: this.#transcript,
      schedule: whole.schedule,
    }
  }

  /** Who may still be tried again is: a refusal by one is no last word while another was away. */
  #last(email: string): [RecipientOutcome, Outcome] {
    const all = this.#faults.get(email) ?? []
    const found = all.find(([{ status }]) => status === "retry") ?? all.at(-1)
    if (!found) throw new Error(`no provider answered for ${email}`)
    return found
  }
}

/** Refused credentials are mended, and burn nothing meanwhile. */
const waiting = (one: RecipientOutcome): RecipientOutcome =>
  one.fault === "authentication" && one.status === "failed"
    ? { ...one, status: "retry", code: null }
    : one
