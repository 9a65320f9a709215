import { isoFrom, millis, millisFrom } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store } from "../store/store"
import { spaceOf } from "./database-stats"

const SAMPLES = "database_sizes"

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A sample an hour, for a week. */
const KEPT_MS = 7 * DAY_MS

/** A shorter time says nothing about a day. */
const LEAST_MS = 6 * HOUR_MS

/** Ten years. Beyond it a forecast means nothing. */
const MOST_DAYS = 3650

const MB = 1024 * 1024

interface SizeSample {
  at: string
  /** Of rows and indexes, without free pages. */
  bytes: number
}

interface DiskForecast {
  /** Of rows and indexes. */
  database_bytes: number
  /** Null where fewer than six hours are known, and on Postgres, whose rows are on another disk. */
  grows_by_a_day: number | null
  /** Until the disk has less than `storage.min_free_mb`; null where it is not known, or ten years or more. */
  days_left: number | null
}

/** Remembers how large the database is, once an hour, for the forecast. */
export async function noteDatabaseSize(store: Store): Promise<void> {
  const age = ({ at }: SizeSample) => millis() - millisFrom(at)
  // One of a later time is of a clock that was put right since.
  const kept = (await samplesOf(store.read)).filter((one) => age(one) >= 0 && age(one) <= KEPT_MS)
  const last = kept.at(-1)
  if (last && age(last) < HOUR_MS) return
  const { all, free } = await spaceOf(store.read)
  const sample = { at: isoFrom(millis()), bytes: all - free }
  const samples = [...kept, sample]
  await store.tx((tx) => instanceValues.set(tx, SAMPLES, JSON.stringify(samples)))
}

/** For how long the disk is large enough, at the growth of the last week. */
export async function diskForecast(
  db: Reader,
  { free_bytes, min_free_mb }: { free_bytes: number; min_free_mb: number },
): Promise<DiskForecast> {
  const { all, free } = await spaceOf(db)
  const database_bytes = all - free
  const [first] = await samplesOf(db)
  const since_ms = first ? millis() - millisFrom(first.at) : 0
  if (!db.isAlone || !first || since_ms < LEAST_MS) {
    return { database_bytes, grows_by_a_day: null, days_left: null }
  }
  const grows_by_a_day = Math.round(((database_bytes - first.bytes) / since_ms) * DAY_MS)
  const room = Math.max(0, free_bytes - min_free_mb * MB + free)
  const days = grows_by_a_day > 0 ? Math.floor(room / grows_by_a_day) : MOST_DAYS
  return { database_bytes, grows_by_a_day, days_left: days >= MOST_DAYS ? null : days }
}

async function samplesOf(db: Reader): Promise<SizeSample[]> {
  const kept = await instanceValues.find(db, SAMPLES)
  return kept === undefined ? [] : (JSON.parse(kept) as SizeSample[])
}
