import type { ApiError } from "../core/errors"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { unavailable } from "./envelope"

const MEBIBYTE = 1_048_576

/** Bodies up to here have a share of their own, so that large ones cannot shut them out. */
const SMALL_BODY_BYTES = MEBIBYTE
const SMALL_SHARE_BYTES = 32 * MEBIBYTE
export const BODY_MEMORY_MB = 128

/** 64 KB a second, looked at over two: one hiccup of the network, or of ours, is not slowness. */
const SLOW_MILLISECONDS = 2000
const SLOW_BYTES = 2 * 65_536

const WARN_MILLISECONDS = 60_000

export interface BodyMemoryOptions {
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

  /** For one request of this project, or of this address where there is no project. */
  enter(owner: string): BodyReservation {
    return new BodyReservation(this, owner, ++this.#last_number)
  }
}

/** What one body holds. */
export class BodyReservation {
  readonly owner: string
  /** Counts up: a later one has a higher number. */
  readonly number: number
  readonly #room: BodyMemory
  #share: Share
  #bytes = 0
  #lost: ApiError | undefined
  #onLost: (() => void) | undefined
  #mark = { at: 0, bytes: 0 }

  constructor(room: BodyMemory, owner: string, number: number) {
    this.#room = room
    this.#share = room.small
    this.owner = owner
    this.number = number
  }

  get bytes(): number {
    return this.#bytes
  }

  /** From now on `take` follows the bytes as they come; `onLost` is told when the place is gone. */
  follow(declared: number, onLost: () => void): void {
    if (declared > SMALL_BODY_BYTES) this.#share = this.#room.large
    this.#onLost = onLost
    this.#mark = { at: this.#room.now(), bytes: 0 }
    this.#share.arriving.add(this)
  }

  /** So many bytes more are in memory. Throws 503 where there is no room for them. */
  take(bytes: number): void {
    this.refuseLost()
    const is_large = this.#bytes + bytes > SMALL_BODY_BYTES
    const more = is_large && this.#share === this.#room.small ? this.#move() + bytes : bytes
    const refusal = this.#share.admit(this, more, this.#room.now())
    if (refusal) throw refusal
    this.#bytes += more
    if (this.#bytes - this.#mark.bytes < SLOW_BYTES) return
    this.#mark = { at: this.#room.now(), bytes: this.#bytes }
  }

  /** The whole body is here: nobody can take the place any more. */
  arrived(): void {
    this.refuseLost()
    this.#share.arriving.delete(this)
  }

  /** Throws 503 when others took the place. */
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
    this.#share = this.#room.large
    this.#share.arriving.add(this)
    return held
  }
}

interface ShareOptions {
  capacity: number
  /** No owner gets more than a quarter. Without it they do, while nobody else needs the room. */
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
   * Counts the bytes, or says why they may not come. Slow bodies give way to them, and bodies that
   * came later: the oldest always goes on, or all of them would stop half-way.
   */
  admit(place: BodyReservation, bytes: number, now: number): ApiError | undefined {
    const { owner } = place
    const isSlow = (one: BodyReservation) => one.isSlow(now)
    const isOver = () => this.#isOverQuarter(place, bytes)
    if (isOver()) {
      const own = this.#others(place).filter((one) => one.owner === owner)
      dismiss(own.filter(isSlow).reverse(), isOver, slow)
      dismiss(laterThan(place, own), isOver, tooMuchForOne)
      if (isOver()) return tooMuchForOne()
    }
    const isFull = () => this.#used + bytes > this.#capacity
    if (isFull()) {
      this.#warn(now)
      const others = this.#others(place)
      dismiss(others.filter(isSlow).reverse(), isFull, slow)
      if (!this.#is_strict && this.#of(owner) + bytes <= this.#quarter) {
        const isGreedy = (one: BodyReservation) => this.#of(one.owner) > this.#quarter
        dismiss(others, isFull, tooMuch, isGreedy)
      }
      dismiss(laterThan(place, others), isFull, tooMuch)
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
  #others(place: BodyReservation): BodyReservation[] {
    return [...this.arriving].filter((one) => one !== place && one.bytes > 0).reverse()
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

const laterThan = (place: BodyReservation, others: BodyReservation[]) =>
  others.filter(({ number }) => number > place.number)

/** Takes their places away, one by one, for as long as there is a need. */
function dismiss(
  places: BodyReservation[],
  isNeeded: () => boolean,
  why: () => ApiError,
  isMeant: (place: BodyReservation) => boolean = () => true,
) {
  for (const place of places) {
    if (isNeeded() && isMeant(place)) place.lose(why())
  }
}

const RETRY_SECONDS = 1

const tooMuch = () =>
  unavailable(
    "The server holds too many request bodies at the moment. Send the request again in a second.",
    "body_memory",
    RETRY_SECONDS,
  )

const tooMuchForOne = () =>
  unavailable(
    "This project sends too many large bodies at once. Send this one again after the answer to another one.",
    "project_body_memory",
    RETRY_SECONDS,
  )

const slow = () =>
  unavailable(
    "The body arrived at less than 64 KB a second, and another request needed its memory. Send it again.",
    "slow_body",
    RETRY_SECONDS,
  )
