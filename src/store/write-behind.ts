import { log } from "../core/log"
import { monotonic, nextTurn, sleep } from "../core/time"

interface WriteBehindOptions<Entry> {
  /** Where it rejects, the group is lost, and so are those that were to follow it at once. */
  write: (group: Entry[]) => Promise<unknown>
  /** What the entries of one group may cost together; each costs 1 without `costOf`. */
  limit: number
  costOf?: (entry: Entry) => number
  /** What may wait; each entry counts 1 without `sizeOf`. */
  most: number
  sizeOf?: (entry: Entry) => number
  /** How long an entry waits for what belongs to it. */
  ripe_ms?: number
  /** Whether the disk has room for what is not essential. */
  hasRoom?: () => boolean
  /** What the log says of what was lost. */
  lost: string
}

/** Writing rests this many times as long as it worked, so that a flood leaves most of the time to others. */
const REST = 3
const MOST_REST_MS = 200

const WARN_MILLISECONDS = 60_000

interface WaitingEntry<Entry> {
  entry: Entry
  since: number
}

/**
 * What is not worth a write of its own gathers here in memory, by key, and a row of recurring work writes it in
 * groups. What the storage cannot take is lost: nobody waits for it, and nobody fails.
 */
export class WriteBehind<Entry> {
  readonly #options: WriteBehindOptions<Entry>
  #waiting = new Map<string, WaitingEntry<Entry>>()
  #size = 0
  #lost = 0
  /** Of the last write that was rejected. */
  #reason: { error?: unknown } = {}
  #told_at = Number.NEGATIVE_INFINITY
  #writing: Promise<void> | undefined
  /** How many wait until everything is written. */
  #hurried = 0

  constructor(options: WriteBehindOptions<Entry>) {
    this.#options = options
  }

  /** What waits under the key. */
  get(key: string): Entry | undefined {
    return this.#waiting.get(key)?.entry
  }

  /** Whether there is room for one more. Where there is none, it is lost. */
  admit(): boolean {
    const has_room = this.#size < this.#options.most
    if (has_room) this.#size += 1
    else this.lose(1)
    return has_room
  }

  /** Adds an entry that was admitted. */
  put(key: string, entry: Entry): Entry {
    this.#waiting.set(key, { entry, since: monotonic() })
    return entry
  }

  /** Counts what was left out. */
  lose(number: number) {
    this.#lost += number
  }

  /** Writes what has waited long enough. */
  writeRipe = (): Promise<void> => this.#writeOnce(this.#options.ripe_ms ?? 0)

  /** Resolves when everything that waits is written, or lost. */
  async flush(): Promise<void> {
    this.#hurried += 1
    while (this.#writing) await this.#writing // it began before the last of these came
    await this.#writeOnce(0)
    this.#hurried -= 1
  }

  #writeOnce(age_ms: number): Promise<void> {
    this.#writing ??= this.#write(age_ms).finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #write(age_ms: number) {
    let goes_on = true
    for (const group of this.#groupsOf(this.#take(age_ms))) {
      const begun = monotonic()
      goes_on &&= await this.#writeGroup(group)
      if (!goes_on)
        this.#loseAll(group) // each further one might wait long for a database that is away
      else if (this.#hurried > 0) await nextTurn()
      else await sleep(Math.min(REST * (monotonic() - begun), MOST_REST_MS))
    }
    if (this.#lost === 0 || monotonic() - this.#told_at < WARN_MILLISECONDS) return
    log.warn(this.#options.lost, { entries: this.#lost, ...this.#reason })
    this.#told_at = monotonic()
    this.#lost = 0
    this.#reason = {}
  }

  #take(age_ms: number): Entry[] {
    const { sizeOf = one } = this.#options
    const before = monotonic() - age_ms
    const ripe: Entry[] = []
    for (const [key, { entry, since }] of this.#waiting) {
      if (since > before) break // the oldest come first
      this.#waiting.delete(key)
      this.#size -= sizeOf(entry)
      ripe.push(entry)
    }
    return ripe
  }

  *#groupsOf(list: Entry[]): Generator<Entry[]> {
    const { limit, costOf = one } = this.#options
    let group: Entry[] = []
    let cost = 0
    for (const entry of list) {
      group.push(entry)
      cost += costOf(entry)
      if (cost < limit) continue
      yield group
      group = []
      cost = 0
    }
    if (group.length > 0) yield group
  }

  /** False: it could not be written. */
  async #writeGroup(group: Entry[]): Promise<boolean> {
    const { write, hasRoom = () => true } = this.#options
    try {
      if (hasRoom()) await write(group)
      else this.#loseAll(group)
      return true
    } catch (error) {
      this.#reason = { error }
      return false
    }
  }

  #loseAll(group: Entry[]) {
    const { sizeOf = one } = this.#options
    for (const entry of group) this.lose(sizeOf(entry))
  }
}

const one = () => 1
