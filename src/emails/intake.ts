import { unavailable } from "../http/envelope"
import * as idempotency from "../http/idempotency"
import type { NewMessage } from "../messages/pipeline"
import { engine } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { troubleOf } from "../store/trouble"
import * as emails from "./accept"

const MOST_TOGETHER = 200
const MOST_WAITING = 5000

/** On Postgres one lane fills while the other waits for its commit; SQLite has one writer. */
const LANES = engine === "postgres" ? 2 : 1

interface Waiting {
  message: NewMessage
  claim: idempotency.Claim | undefined
  signal: AbortSignal
  resolve: () => void
  reject: (error: unknown) => void
}

type Entering = Pick<Waiting, "claim" | "signal">

const TOO_MANY = "More requests wait for the storage than it takes. Nothing was accepted."

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
   * Resolves when the message is on disk. Rejects with `AlreadyAnswered` for a taken claim, with 503
   * when too many wait already, and when the signal was aborted before its turn: whoever was told
   * 504 must not find the message sent.
   */
  submit(message: NewMessage, { claim, signal }: Entering): Promise<void> {
    if (this.#waiting.length >= MOST_WAITING) throw unavailable(TOO_MANY, "busy", 1)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, claim, signal, resolve, reject })
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
      const taken = await this.#store.tx((tx) => enter(tx, group))
      for (const one of group) answer(one, taken)
    } catch (error) {
      if (group.length === 1 || troubleOf(error)) {
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

/** Returns the claims that somebody else answered before. */
async function enter(tx: Tx, group: Waiting[]): Promise<Set<idempotency.Claim>> {
  const claims = group.flatMap(({ message, claim }) =>
    claim ? [{ claim, stored: storedReply(message) }] : [],
  )
  const fresh = await idempotency.take(tx, claims)
  // Each new request is given away once, so that two claims of one group cannot both have it.
  const late = claims.filter(({ claim }) => !fresh.delete(claim.request))
  const taken = new Set(late.map(({ claim }) => claim))
  const admitted = group.filter(({ claim }) => !claim || !taken.has(claim))
  await emails.accept(
    tx,
    admitted.map(({ message }) => message),
  )
  return taken
}

function answer({ claim, resolve, reject }: Waiting, taken: Set<idempotency.Claim>) {
  if (claim && taken.has(claim)) reject(new idempotency.AlreadyAnswered(claim))
  else resolve()
}

const storedReply = (message: NewMessage) => ({
  status: 201,
  answer: JSON.stringify(emails.reply(message)),
})

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
