import type { ApiError } from "../core/errors"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { unavailable } from "./envelope"

const MEBIBYTE = 1_048_576

/** Bodies up to here have a share of their own, so that large ones cannot shut them out. */
const SMALL_BODY_BYTES = MEBIBYTE
const SMALL_SHARE_BYTES = 32 * MEBIBYTE
const BODY_MEMORY_MB = 128

/** 64 KB a second, measured over two: a short pause of the network is not slowness. */
const SLOW_MILLISECONDS = 2000
const SLOW_BYTES = 2 * 65_536

const WARN_MILLISECONDS = 60_000

interface BodyMemoryOptions {
  /** For all bodies together; 128 without it. */
  memory_mb?: number | undefined
  now?: () => number
}

/**
 * How many bytes of bodies are in memory: from their arrival until their requests are answered.
 * What does not fit is refused with 503, so that no number of bodies exhausts the machine.
 */
export class BodyMemory {
  readonly small: Share
  readonly large: Share
  readonly now: () => number
  #last_number = 0

  constructor({ memory_mb = BODY_MEMORY_MB, now = monotonic }: BodyMemoryOptions = {}) {
    this.now = now
    this.small = new Share({ capacity: SMALL_SHARE_BYTES, is_strict: false })
    const rest = memory_mb * MEBIBYTE - SMALL_SHARE_BYTES
    this.large = new Share({ capacity: rest, is_strict: true })
  }

  /** For one request. Its owner is the project, or the address where there is no project. */
  enter(owner: string): BodyReservation {
    return new BodyReservation(this, owner, ++this.#last_number)
  }
}

export class BodyReservation {
  readonly owner: string
  /** Counts up: a later one has a higher number. */
  readonly number: number
  readonly #memory: BodyMemory
  #share: Share
  #bytes = 0
  #lost: ApiError | undefined
  #onLost: (() => void) | undefined
  #mark = { at: 0, bytes: 0 }

  constructor(memory: BodyMemory, owner: string, number: number) {
    this.#memory = memory
    this.#share = memory.small
    this.owner = owner
    this.number = number
  }

  get bytes(): number {
    return this.#bytes
  }

  /** From now on the bytes are counted as they come. `onLost` is called when others get the memory. */
  follow(declared: number, onLost: () => void): void {
    if (declared > SMALL_BODY_BYTES) this.#share = this.#memory.large
    this.#onLost = onLost
    this.#mark = { at: this.#memory.now(), bytes: 0 }
    this.#share.arriving.add(this)
  }

  /** So many bytes more are in memory. Throws 503 where there is no room for them. */
  take(bytes: number): void {
    this.refuseLost()
    const is_large = this.#bytes + bytes > SMALL_BODY_BYTES
    const more = is_large && this.#share === this.#memory.small ? this.#move() + bytes : bytes
    const refusal = this.#share.admit(this, more, this.#memory.now())
    if (refusal) throw refusal
    this.#bytes += more
    if (this.#bytes - this.#mark.bytes < SLOW_BYTES) return
    this.#mark = { at: this.#memory.now(), bytes: this.#bytes }
  }

  /** The whole body is here: its memory cannot be taken away any more. */
  arrived(): void {
    this.refuseLost()
    this.#share.arriving.delete(this)
  }

  /** Throws 503 when others got the memory. */
  refuseLost(): void {
    if (this.#lost) throw this.#lost
  }

  isSlow(now: number): boolean {
    return now - this.#mark.at > SLOW_MILLISECONDS
  }

  lose(reason: ApiError): void {
    this.#lost = reason
    this.leave()
    this.#onLost?.()
  }

  /** The request is answered. A second call does nothing. */
  leave(): void {
    this.#share.arriving.delete(this)
    this.#share.release(this.owner, this.#bytes)
    this.#bytes = 0
  }

  /** It has outgrown the share of the small ones. Returns what it held there. */
  #move(): number {
    const held = this.#bytes
    this.leave()
    this.#share = this.#memory.large
    this.#share.arriving.add(this)
    return held
  }
}

interface ShareOptions {
  capacity: number
  /** No owner gets more than a quarter. Otherwise one may, while no other owner needs the memory. */
  is_strict: boolean
}

class Share {
  readonly arriving = new Set<BodyReservation>()
  readonly #capacity: number
  readonly #quarter: number
  readonly #is_strict: boolean
  readonly #owners = new Map<string, number>()
  #used = 0
  #warned_at = Number.NEGATIVE_INFINITY

  constructor({ capacity, is_strict }: ShareOptions) {
    this.#capacity = capacity
    this.#quarter = capacity / 4
    this.#is_strict = is_strict
  }

  /**
   * Counts the bytes, or says why they may not come. Slow bodies and bodies that came later give
   * way to them. The oldest body always goes on, or all of them would stop half-way.
   */
  admit(asking: BodyReservation, bytes: number, now: number): ApiError | undefined {
    const { owner } = asking
    const isSlow = (one: BodyReservation) => one.isSlow(now)
    const isOver = () => this.#isOverQuarter(asking, bytes)
    if (isOver()) {
      const own = this.#others(asking).filter((one) => one.owner === owner)
      dismiss(own.filter(isSlow).reverse(), isOver, slow)
      dismiss(laterThan(asking, own), isOver, tooMuchForOne)
      if (isOver()) return tooMuchForOne()
    }
    const isFull = () => this.#used + bytes > this.#capacity
    if (isFull()) {
      this.#warn(now)
      const others = this.#others(asking)
      dismiss(others.filter(isSlow).reverse(), isFull, slow)
      if (!this.#is_strict && this.#of(owner) + bytes <= this.#quarter) {
        const isGreedy = (one: BodyReservation) => this.#of(one.owner) > this.#quarter
        dismiss(others, isFull, tooMuch, isGreedy)
      }
      dismiss(laterThan(asking, others), isFull, tooMuch)
      if (isFull()) return tooMuch()
    }
    this.#used += bytes
    this.#owners.set(owner, this.#of(owner) + bytes)
    return undefined
  }

  release(owner: string, bytes: number): void {
    if (bytes === 0) return
    this.#used -= bytes
    const left = this.#of(owner) - bytes
    if (left > 0) this.#owners.set(owner, left)
    else this.#owners.delete(owner)
  }

  #of(owner: string): number {
    return this.#owners.get(owner) ?? 0
  }

  /** One body alone may be as large as its route allows, however small the quarter is. */
  #isOverQuarter({ owner, bytes: own }: BodyReservation, bytes: number): boolean {
    const held = this.#of(owner)
    return this.#is_strict && held > own && held + bytes > this.#quarter
  }

  /** The others that still arrive, the latest first. */
  #others(asking: BodyReservation): BodyReservation[] {
    return [...this.arriving].filter((one) => one !== asking && one.bytes > 0).reverse()
  }

  #warn(now: number): void {
    if (now - this.#warned_at < WARN_MILLISECONDS) return
    this.#warned_at = now
    log.warn("request bodies are refused, because their memory is full", {
      capacity_mb: this.#capacity / MEBIBYTE,
      setting: "http.body_memory_mb",
    })
  }
}

const laterThan = (asking: BodyReservation, others: BodyReservation[]) =>
  others.filter(({ number }) => number > asking.number)

/** Takes their memory away, one by one, for as long as there is a need. */
function dismiss(
  others: BodyReservation[],
  isNeeded: () => boolean,
  why: () => ApiError,
  isChosen: (asking: BodyReservation) => boolean = () => true,
) {
  for (const asking of others) {
    if (isNeeded() && isChosen(asking)) asking.lose(why())
  }
}

const RETRY_SECONDS = 1

const refusal = (reason: string, message: string) => () =>
  unavailable(message, reason, RETRY_SECONDS)

const tooMuch = refusal(
  "body_memory",
  "The server holds too many request bodies at the moment. Send the request again in a second.",
)
const tooMuchForOne = refusal(
  "project_body_memory",
  "This project sends too many large bodies at once. Send this one again after the answer to another one.",
)
const slow = refusal(
  "slow_body",
  "The body arrived at less than 64 KB a second, and another request needed its memory. Send it again.",
)
