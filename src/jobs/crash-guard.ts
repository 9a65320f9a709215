import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs"
import { bytesOfId, uuidOfBytes } from "../core/ids"
import { log } from "../core/log"
import { requireFile } from "../core/small-file"
import { monotonic, sleep } from "../core/time"
import type { WorkRow } from "./work-item"

export const CRASH_HOLD = "crash"

const CRASH_REASON =
  "The server stopped three times while it worked on this alone. It is held until you cancel it."

/** After this many deaths of the process a row is worked on alone. */
const SUSPECT_DEATHS = 2
const MOST_ALONE_DEATHS = 3

/** The first seconds say nothing about a row: everything is slow, and many processes die then. */
const WARM_UP_MILLISECONDS = 2_000

/** How long other work waits for one row that runs alone, and for all of them together. */
const ALONE_MILLISECONDS = 10_000
const ALL_ALONE_MILLISECONDS = 60_000

/** id, attempt, deaths, deaths alone, flags, and a byte that is not used. */
const SLOT_BYTES = 24
const [ATTEMPT_AT, DEATHS_AT, ALONE_DEATHS_AT, FLAGS_AT] = [16, 20, 21, 22]
const IN_FLIGHT = 1
const ALONE = 2

interface Slot {
  number: number
  id: string
  attempt: number
  /** Of the process, while the row was in flight with others. */
  deaths: number
  alone_deaths: number
  flags: number
}

interface Guarded {
  ready(ids: string[]): Promise<WorkRow[]>
  /** Works on the row; resolves at its end. */
  run(id: string): Promise<void>
  hold(row: WorkRow, reason: string): Promise<void>
}

/**
 * Lets suspects of all tables run one at a time, and everything else only after them: a death while
 * one was alone is then its own.
 */
export class AloneFirst {
  #missing = 0
  #last: Promise<void> = Promise.resolve()
  readonly #all = Promise.withResolvers<void>()

  join() {
    this.#missing += 1
  }

  async pass(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work)
    await this.#last
    this.#missing -= 1
    if (this.#missing === 0) this.#all.resolve()
    await this.#all.promise
  }

  /** The process stops: no table waits for others any more, which may never have begun. */
  giveUp() {
    this.#all.resolve()
  }
}

/**
 * Remembers across the death of the process what was in flight, in a small file of slots that is
 * never synced: the pages of a file outlive a process. A slot is written at the begin of an
 * attempt. At its end the row itself shows that: its attempt is counted, or it is over.
 *
 * A row that was in flight at two deaths is attempted alone. Only a death while it is alone counts
 * against it, and the third such death holds it.
 */
export class CrashGuard {
  /** Undefined where the file could not be opened: then nothing is remembered. */
  readonly #file: number | undefined
  readonly #alone_first: AloneFirst
  /** Of the life before. */
  readonly #left: Slot[]
  readonly #suspects = new Map<string, Slot>()
  readonly #slots = new Map<string, number>()
  #free: number[] = []
  #count = 0
  #is_alone = false
  #is_closed = false
  readonly #buffer = Buffer.alloc(SLOT_BYTES)

  constructor(path: string, alone_first: AloneFirst) {
    const left = slotsOf(readOrNothing(path)).flatMap(afterDeath)
    this.#file = openOrNothing(path)
    this.#alone_first = alone_first
    alone_first.join()
    // At once: a death before `recover` must neither forget it nor count it again.
    this.#left = left.map((slot) => ({ ...slot, number: this.#freeSlot() }))
    for (const slot of this.#left) this.#put(slot)
  }

  /** Checks what the last life left, holds or runs its suspects, and waits until all tables have done so. */
  async recover(guarded: Guarded): Promise<void> {
    await this.#alone_first.pass(async () => {
      try {
        await this.#check(guarded)
        await this.#runSuspects(guarded)
      } catch (error) {
        log.error("the work of the process before could not be checked", { error })
      }
    })
  }

  begin(id: string, attempt: number) {
    const known = this.#suspects.get(id)
    const number = known?.number ?? this.#freeSlot()
    this.#slots.set(id, number)
    const { deaths, alone_deaths } = known ?? { deaths: 0, alone_deaths: 0 }
    const flags = this.#is_alone ? IN_FLIGHT | ALONE : IN_FLIGHT
    this.#put({ number, id, attempt, deaths, alone_deaths, flags })
  }

  /** It is over. One that was put off without being counted leaves its slot as if it had not begun. */
  end(id: string, is_counted: boolean) {
    const number = this.#slots.get(id)
    if (number === undefined) return
    this.#slots.delete(id)
    const suspect = this.#suspects.get(id)
    if (suspect && !is_counted) return this.#put({ ...suspect, number, flags: 0 })
    if (suspect || !is_counted) this.#clear(number)
    this.#suspects.delete(id)
    this.#free.push(number)
  }

  /** The process is about to stop: `recover` waits for no other table. */
  stop() {
    this.#alone_first.giveUp()
  }

  /** The process stops in order: nothing is held against what it cut off. */
  close() {
    if (this.#is_closed) return
    this.#is_closed = true
    if (this.#file === undefined) return
    try {
      ftruncateSync(this.#file)
    } catch (error) {
      log.warn("what was in flight could not be forgotten", { error })
    }
    closeSync(this.#file)
  }

  async #check(guarded: Guarded) {
    const rows = await guarded.ready(this.#left.map(({ id }) => id))
    const found = new Map(rows.map((row) => [row.id, row]))
    for (const slot of this.#left) {
      const row = found.get(slot.id)
      const was_in_flight = row?.attempt === slot.attempt - 1
      if (was_in_flight && slot.alone_deaths < MOST_ALONE_DEATHS) {
        this.#suspects.set(slot.id, slot)
        continue
      }
      if (row && was_in_flight) {
        log.error("a row is held: the process ended while it worked on it alone", { id: row.id })
        await guarded.hold(row, CRASH_REASON)
      }
      this.#clear(slot.number)
      this.#free.push(slot.number)
    }
  }

  async #runSuspects({ run }: Guarded) {
    const suspects = [...this.#suspects.values()]
      .filter(({ deaths, alone_deaths }) => deaths >= SUSPECT_DEATHS || alone_deaths > 0)
      .sort((one, other) => one.alone_deaths - other.alone_deaths)
    if (suspects.length > 0) await sleep(WARM_UP_MILLISECONDS)
    const until = monotonic() + ALL_ALONE_MILLISECONDS
    for (const { id } of suspects) {
      if (monotonic() > until) return
      this.#is_alone = true
      await Promise.race([run(id), sleep(ALONE_MILLISECONDS)])
      this.#is_alone = false
      const number = this.#slots.get(id)
      const suspect = this.#suspects.get(id)
      // It goes on among others from here.
      if (number !== undefined && suspect) this.#put({ ...suspect, number, flags: IN_FLIGHT })
    }
  }

  #freeSlot(): number {
    const number = this.#free.pop() ?? this.#count
    if (number === this.#count) this.#count += 1
    return number
  }

  #put({ number, id, attempt, deaths, alone_deaths, flags }: Slot) {
    this.#buffer.set(bytesOfId(id))
    this.#buffer.writeUInt32LE(attempt, ATTEMPT_AT)
    this.#buffer[DEATHS_AT] = Math.min(deaths, 255)
    this.#buffer[ALONE_DEATHS_AT] = Math.min(alone_deaths, 255)
    this.#buffer[FLAGS_AT] = flags
    this.#write(number)
  }

  #clear(number: number) {
    this.#buffer.fill(0)
    this.#write(number)
  }

  /** A full disk must not stop the work that it guards. */
  #write(number: number) {
    if (this.#is_closed || this.#file === undefined) return
    try {
      writeSync(this.#file, this.#buffer, 0, SLOT_BYTES, number * SLOT_BYTES)
    } catch (error) {
      log.debug("what is in flight could not be noted", { error })
    }
  }
}

/** The slot with the death that has just been; nothing for one that was free or has nothing against it. */
function afterDeath(slot: Slot): Slot[] {
  const was_alone = (slot.flags & ALONE) !== 0
  const was_in_flight = (slot.flags & IN_FLIGHT) !== 0
  const deaths = slot.deaths + (was_in_flight && !was_alone ? 1 : 0)
  const alone_deaths = slot.alone_deaths + (was_alone ? 1 : 0)
  return deaths + alone_deaths > 0 ? [{ ...slot, deaths, alone_deaths, flags: 0 }] : []
}

function slotsOf(bytes: Buffer): Slot[] {
  const slots: Slot[] = []
  for (let at = 0; at + SLOT_BYTES <= bytes.length; at += SLOT_BYTES) {
    const slot = bytes.subarray(at, at + SLOT_BYTES)
    const attempt = slot.readUInt32LE(ATTEMPT_AT)
    if (attempt === 0) continue
    const id = uuidOfBytes(slot)
    const [deaths = 0, alone_deaths = 0, flags = 0] = slot.subarray(DEATHS_AT)
    slots.push({ number: slots.length, id, attempt, deaths, alone_deaths, flags })
  }
  return slots
}

/** A full disk must not keep the server from its start. */
function openOrNothing(path: string): number | undefined {
  try {
    requireFile(path, "Remove it: the next start makes it anew.")
    return openSync(path, "w+", 0o600)
  } catch (error) {
    log.warn("what is in flight cannot be noted: a message that ends the server is not found", {
      ...{ path, error },
    })
    return undefined
  }
}

function readOrNothing(path: string): Buffer {
  try {
    requireFile(path, "")
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}
