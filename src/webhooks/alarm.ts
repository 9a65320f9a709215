import { millis, monotonic, nextTurn, sleep } from "../core/time"

/** A look costs the same for one delivery as for forty: with much to do there are fewer of them. */
const PAUSE_PER_LOOK = 2
const LONGEST_PAUSE_MILLISECONDS = 5

/** Lets a loop sleep until work is due, or somebody says that there is some. */
export class Alarm {
  readonly #longest_ms: number
  #rung = false
  #begun = monotonic()
  #wake: () => void = () => {}

  constructor(longest_ms: number) {
    this.#longest_ms = longest_ms
  }

  /** Ends the sleep; the next one, if there is none now. */
  ring() {
    this.#rung = true
    this.#wake()
  }

  /** A look begins: what rang so far is known. */
  quiet() {
    this.#rung = false
    this.#begun = monotonic()
  }

  /** Until `due` (milliseconds since 1970), the longest pause, or a ring since `quiet`. */
  async rest(due: number): Promise<void> {
    const ended = monotonic()
    if (!this.#rung) await this.#sleep(due)
    const pause = Math.min(LONGEST_PAUSE_MILLISECONDS, (ended - this.#begun) * PAUSE_PER_LOOK)
    const left = pause - (monotonic() - ended)
    if (left >= 1) await sleep(left)
    else await nextTurn() // what ends in the same turn is looked for together
  }

  async #sleep(due: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const pause = Math.min(this.#longest_ms, Math.max(1, due - millis()))
    const timer = setTimeout(resolve, pause)
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }
}
