import type { Settings } from "../../core/config"
import { isoFrom, millis, millisFrom, now } from "../../core/time"
import * as instanceValues from "../../store/instance-values"
import type { Reader, Tx } from "../../store/store"

/** What the instance knows of its backups, whichever node made them. */
interface BackupState {
  /** When the schedule began to count. */
  since: string
  /** The job of the last one. */
  job_id: string | null
  started_at: string | null
  succeeded_at: string | null
  /** When the first of those began that failed in a row; null after a success. */
  failing_since: string | null
  /** Files that rows name and that the last backup lacks. */
  lacking?: number
  /** When the operators were last told. */
  told_at: string | null
}

const BACKUPS = "backups"

const NOTHING_YET = {
  job_id: null,
  started_at: null,
  succeeded_at: null,
  failing_since: null,
  told_at: null,
}

/** Undefined before the first look of the schedule, and before the first backup. */
export async function backupState(db: Reader): Promise<BackupState | undefined> {
  const kept = await instanceValues.find(db, BACKUPS)
  return kept === undefined ? undefined : (JSON.parse(kept) as BackupState)
}

/** The state, which no other transaction changes before this one ends. */
export async function stateForUpdate(tx: Tx): Promise<BackupState> {
  await instanceValues.initialize(tx, BACKUPS, JSON.stringify({ since: now(), ...NOTHING_YET }))
  return JSON.parse((await instanceValues.findForUpdate(tx, BACKUPS)) ?? "{}") as BackupState
}

export const setState = (tx: Tx, state: BackupState): Promise<void> =>
  instanceValues.set(tx, BACKUPS, JSON.stringify(state))

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const PERIODS: Record<string, number> = { hourly: HOUR_MS, daily: DAY_MS, weekly: 7 * DAY_MS }

/** An instance that begins has a first backup after this, and one that failed is tried again. */
const FIRST_MS = HOUR_MS
const RETRY_MS = HOUR_MS

/** The clocks of two nodes differ by less. What began later than this from now was noted by a wrong clock. */
const AHEAD_MS = HOUR_MS

/** How long after it was due a backup is missed. */
const LATE_MS = 6 * HOUR_MS

/**
 * When the next backup is due, in milliseconds since 1970; undefined where there is no schedule. Now, where the
 * clock was ahead at the last one and was put right: the schedule would wait until the clock is there again.
 */
export function dueAt(
  schedule: Settings["backup.schedule"],
  { since, started_at, failing_since }: BackupState,
): number | undefined {
  if (schedule === "off") return undefined
  const last = started_at === null ? undefined : millisFrom(started_at)
  const period = PERIODS[schedule]
  const begun = last ?? millisFrom(since)
  if (begun > millis() + AHEAD_MS) return millis()
  const planned =
    period === undefined
      ? nextAt(schedule, begun)
      : begun + (last === undefined ? FIRST_MS : period)
  return failing_since === null ? planned : Math.min(planned, begun + RETRY_MS)
}

/** The first time of that day, in UTC, after the moment. */
function nextAt(time_of_day: string, after: number): number {
  const at = millisFrom(`${isoFrom(after).slice(0, 10)}T${time_of_day}:00.000Z`)
  return at > after ? at : at + DAY_MS
}

/** What `/readyz` and `belfry status` warn of. The route is public, so it does not say why. */
export async function backupWarnings(
  db: Reader,
  { "backup.schedule": schedule }: Pick<Settings, "backup.schedule">,
): Promise<string[]> {
  const state = await backupState(db)
  if (!state) return []
  const { failing_since, succeeded_at, lacking = 0 } = state
  const last = succeeded_at === null ? "There is none yet." : `The last one is of ${succeeded_at}.`
  if (failing_since !== null) {
    return [`Backups fail since ${failing_since}. ${last} The log has the reason.`]
  }
  const lacks = lacking === 0 ? [] : [`${lacksText({ lacking, succeeded_at })} ${LOOK}`]
  const due = dueAt(schedule, state)
  if (due === undefined || millis() < due + LATE_MS) return lacks
  return [`No backup was made since ${isoFrom(due)}, when one was due. ${last}`, ...lacks]
}

const LOOK = "The log names the first ones."

/** Of a backup without files that messages or received mails name. */
export const lacksText = ({ lacking, succeeded_at }: LackingBackup): string =>
  `The backup of ${succeeded_at} lacks ${lacking === 1 ? "1 file" : `${lacking} files`} that rows of the database name.`

export type LackingBackup = { lacking: number; succeeded_at: string | null }
