import { stat } from "node:fs/promises"
import type { Disk } from "../core/disk"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import { metricCounter } from "../core/metrics"
import { isoFrom, millis, millisFrom, now, secondsFromNow, sleep } from "../core/time"
import { LostDatabase } from "../store/database-file"
import { FileCheck } from "../store/file-check"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store } from "../store/store"
import {
  type BrokenInvariant,
  brokenIn,
  INVARIANTS,
  type InvariantName,
  lookedAt,
} from "./invariants"

const CHECKED_AT = "database_checked_at"
const SWEPT = "invariants_swept"

const HOUR_SECONDS = 3600
const DAY_MS = 24 * HOUR_SECONDS * 1000
/** With fewer commits from one look to the next it is a quiet time. */
const QUIET_COMMITS = 120
/** Longer than from one check to the next one. */
const SPAN_SECONDS = 50 * HOUR_SECONDS
/** Between two steps, so that sends never wait for more than one of them. */
const PAUSE_MS = 2
/** Broken places that one log line names. */
const NAMED = 5

const violations = metricCounter(
  "belfry_invariant_violations_total",
  "Broken places that the nightly check of invariants found.",
)

export type NightlyCheck = ReturnType<typeof nightlyCheck>

/**
 * Once a day one of the nodes checks its SQLite file in full, by a thread, and then looks whether the invariants hold.
 * It waits for a quiet minute, but never for more than another day.
 */
export function nightlyCheck(store: Store, disk: Pick<Disk, "failed" | "isDamaged" | "healthy">) {
  const { file: opened } = store
  const onDamage = (error: Error) => void disk.failed(error)
  const file = opened && new FileCheck({ path: opened.path, onDamage })
  const started_at = now()
  let commits = store.stats.commits
  const isQuiet = () => {
    const before = commits
    commits = store.stats.commits
    return commits - before < QUIET_COMMITS
  }
  return {
    /** How far a check of the file is, or undefined while there is none. */
    get progress(): string | undefined {
      return file?.progress
    },
    /** Checks a file quickly that was too large to be checked before the start. */
    begin() {
      if (file && !opened?.is_checked) void file.quick()
    },
    /** Each minute: checks where it is due. */
    async look(signal?: AbortSignal) {
      const is_quiet = isQuiet()
      if (disk.isDamaged() || !disk.healthy() || file?.progress !== undefined) return
      if (!(await isDue(store, is_quiet)) || (file && !(await file.full()))) return
      await checkInvariants(store, started_at, signal)
    },
    stop: async () => file?.stop(),
  }
}

/** The node that hears yes checks. The first question only notes the time. */
async function isDue(store: Store, is_quiet: boolean): Promise<boolean> {
  const isDueAt = (checked_at: string | undefined) => {
    // A time far ahead is of a clock that was put right since.
    const age = checked_at === undefined ? 0 : Math.abs(millis() - millisFrom(checked_at))
    return age >= 2 * DAY_MS || (age >= DAY_MS && is_quiet)
  }
  const known = await instanceValues.find(store.read, CHECKED_AT)
  if (known !== undefined && !isDueAt(known)) return false
  return store.tx(async (tx) => {
    const checked_at = await instanceValues.findForUpdate(tx, CHECKED_AT)
    const is_due = isDueAt(checked_at)
    if (is_due || checked_at === undefined) await instanceValues.set(tx, CHECKED_AT, now())
    return is_due
  })
}

/** What the last check of any node found. */
interface CheckedInvariants {
  at: string
  found: Record<InvariantName, number>
}

/** What `/readyz` warns of: how many places the last check found broken. */
export async function invariantWarnings(db: Reader): Promise<string[]> {
  const last = await lastCheck(db)
  const broken = Object.entries(last?.found ?? {}).filter(([, found]) => found > 0)
  return broken.map(
    ([name, found]) =>
      `Invariant ${name} is broken in ${found} places. ` +
      `${INVARIANTS[name as InvariantName]}. Run: belfry db check`,
  )
}

/** Undefined before the first check. */
export async function lastCheck(db: Reader): Promise<CheckedInvariants | undefined> {
  const kept = await instanceValues.find(db, SWEPT)
  return kept === undefined ? undefined : (JSON.parse(kept) as CheckedInvariants)
}

/**
 * Looks whether the invariants I1, I4 and I5 hold, counts what breaks them
 * (`belfry_invariant_violations_total`), and logs it as an error. After the signal nothing is said.
 */
export async function checkInvariants(
  store: Store,
  started_at: string,
  signal?: AbortSignal,
): Promise<CheckedInvariants> {
  const places: BrokenInvariant[] = []
  const found = { I1: 0, I4: 0, I5: 0 }
  const day_ago = isoFrom(millis() - DAY_MS)
  const look = {
    pause: () => sleep(PAUSE_MS),
    since: secondsFromNow(-SPAN_SECONDS),
    // What became due while no server ran has had no chance yet.
    overdue_before: started_at < day_ago ? day_ago : null,
  }
  for await (const part of lookedAt(store.read)) {
    await store.snapshot(async (db) => {
      for await (const place of brokenIn({ ...look, db }, part)) {
        if (signal?.aborted) return
        found[place.name] += 1
        if (found[place.name] <= NAMED) places.push(place)
      }
    })
    if (signal?.aborted) break
  }
  const checked = { at: now(), found }
  if (!signal?.aborted) await report(store, checked, places)
  return checked
}

async function report(store: Store, checked: CheckedInvariants, places: BrokenInvariant[]) {
  await store.tx((tx) => instanceValues.set(tx, SWEPT, JSON.stringify(checked)))
  for (const name of Object.keys(INVARIANTS) as InvariantName[]) {
    const found = checked.found[name]
    violations.add({ name }, found)
    if (found === 0) continue
    const examples = places
      .filter((place) => place.name === name)
      .map(({ owner_id, id, what }) => ({ owner_id, id, what }))
    log.error(`AN INVARIANT IS BROKEN: ${name}. ${INVARIANTS[name]}.`, {
      found,
      examples,
      next: "run `belfry db check`, and keep a copy of the database",
    })
  }
}

/**
 * Each call tells when another file, or none, has the name of the one that is open now: no start would find
 * what is written from then on. SQLite asks this itself, but not where it has a write-ahead log.
 */
export function fileWatch(path: string, onLoss: (error: Error) => void): () => Promise<void> {
  const opened = inodeOf(path)
  let is_lost = false
  return async () => {
    const found = await inodeOf(path)
    if (is_lost || found === "untold" || found === (await opened)) return
    is_lost = true
    onLoss(new LostDatabase(path))
  }
}

/** Any other error than a missing file says nothing about the file. */
const inodeOf = (path: string): Promise<bigint | "gone" | "untold"> =>
  stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    (error) => (codeOf(error) === "ENOENT" ? "gone" : "untold"),
  )
