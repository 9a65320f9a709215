import { ApiError } from "../core/errors"
import { unavailable } from "../http/envelope"
import * as idempotency from "../http/idempotency"
import { engine } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { faultOf } from "../store/trouble"
import * as emails from "./accept"

const MOST_TOGETHER = 200
const MOST_WAITING = 5000

/** On Postgres one lane fills while the other waits for its commit; SQLite has one writer. */
const LANES = engine === "postgres" ? 2 : 1

interface Waiting {
  entry: emails.Entry
  /** What a repetition of the request is answered. */
  answer: object
  claim: idempotency.Claim | undefined
  signal: AbortSignal
  resolve: () => void
  reject: (error: unknown) => void
}

type Entering = Pick<Waiting, "claim" | "signal">

const TOO_MANY = "Too many requests wait for the storage. This one was not accepted; send it again."

/**
 * Single sends that arrive together enter together: one transaction, a few statements for all of
 * them. On Postgres that is the difference between a thousand and several thousand a second.
 */
export class Intake {
  readonly #store: Store
  #waiting: Waiting[] = []
  #lanes = 0

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Resolves when the message is on disk. Rejects with `AlreadyAnswered` for a taken claim, with
   * 402 `payment_required` when the quota of the month is used up, with 503 when too many wait
   * already, and when the signal was aborted before its turn: whoever was told 504 must not find the
   * message sent.
   */
  submit(
    entry: emails.Entry,
    { claim, signal }: Entering,
    answer: object = emails.reply(entry.message),
  ): Promise<void> {
    if (this.#waiting.length >= MOST_WAITING) throw unavailable(TOO_MANY, "busy", 1)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, answer, claim, signal, resolve, reject })
      if (this.#lanes < LANES) void this.#drain()
    })
  }

  async #drain() {
    this.#lanes += 1
    await this.#gather()
    while (this.#waiting.length > 0) {
      await this.#enter(this.#waiting.splice(0, MOST_TOGETHER).filter(isWanted))
      await this.#gather()
    }
    this.#lanes -= 1
  }

  /** Until a turn of the event loop brings no more: one large commit costs less than two. */
  async #gather() {
    let known = -1
    while (this.#waiting.length > known && this.#waiting.length < MOST_TOGETHER) {
      known = this.#waiting.length
      await nextTurn()
    }
  }

  async #enter(group: Waiting[]) {
    if (group.length === 0) return
    try {
      const refusals = await this.#store.tx((tx) => enter(tx, group))
      for (const one of group) {
        const refusal = refusals.get(one)
        if (refusal) one.reject(refusal)
        else one.resolve()
      }
    } catch (error) {
      if (group.length === 1 || faultOf(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      // One of them spoilt the transaction for all: each stands for itself now.
      for (const one of group) await this.#enter([one])
    }
  }
}

function isWanted({ signal, reject }: Waiting): boolean {
  if (signal.aborted) reject(signal.reason)
  return !signal.aborted
}

/** Returns who did not get in, and why: answered before by somebody else, or over the quota. */
async function enter(tx: Tx, group: Waiting[]): Promise<Map<Waiting, Error>> {
  const refusals = new Map<Waiting, Error>()
  const claims = group.flatMap(({ answer, claim }) =>
    claim ? [{ claim, stored: { status: 201, answer: JSON.stringify(answer) } }] : [],
  )
  const fresh = await idempotency.take(tx, claims)
  for (const one of group) {
    const { claim } = one
    // Each new request is given away once, so that two claims of one group cannot both have it.
    if (claim && !fresh.delete(claim.request)) {
      refusals.set(one, new idempotency.AlreadyAnswered(claim))
    }
  }
  const admitted = group.filter((one) => !refusals.has(one))
  const answers = await emails.accept(
    tx,
    admitted.map(({ entry }) => entry),
  )
  for (const [at, one] of admitted.entries()) {
    const answer = answers[at]
    if (!(answer instanceof ApiError)) continue
    refusals.set(one, answer)
    if (one.claim) await idempotency.giveUp(tx, one.claim)
  }
  return refusals
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
