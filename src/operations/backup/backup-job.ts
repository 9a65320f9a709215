import { and, eq, gt, ne } from "drizzle-orm"
import type { Settings } from "../../core/config"
import { ApiError, fail } from "../../core/errors"
import { log } from "../../core/log"
import { metricGauge } from "../../core/metrics"
import { millis, millisFrom, now, secondsFromNow } from "../../core/time"
import type { SystemLetter, SystemMail } from "../../identity/system-mail"
import { consoleUsers } from "../../identity/tables"
import { inboundFiles } from "../../inbound/tables"
import { enqueue, type JobHandler, type JobKind } from "../../jobs/jobs"
import * as longJobs from "../../jobs/long-jobs"
import { jobs } from "../../jobs/tables"
import { DEAD, noticeSchedule, READY, type RetrySchedule } from "../../jobs/work-item"
import { messageFiles } from "../../messages/tables"
import { short } from "../../store/columns"
import type { Reader, Store, Tx } from "../../store/store"
import { raiseMark } from "../database-mark"
import { namedAmong } from "../file-sweep"
import { type Backup, BackupRunning } from "./backup-folder"
import {
  backupState,
  dueAt,
  type LackingBackup,
  lacksText,
  setState,
  stateForUpdate,
} from "./backup-state"
import type { BackupProgress, Backups } from "./create-backup"
import type { MissingFiles } from "./pack-task"

const { INSTANCE_JOB } = longJobs

interface BackupOrder {
  /** Of the long job that shows its progress. */
  job_id: string
}

/** One backup. A server that stopped meanwhile begins anew; what failed waits for the schedule. */
export const backupCreate: JobKind<BackupOrder> = {
  name: "backup.create",
  schedule: (attempt) => (attempt < 3 ? 60 : undefined),
}

interface BackupFailure {
  reason: string
  failing_since: string
}

/** The mail that tells the operators. */
export const backupFailed: JobKind<BackupFailure> = {
  name: "backup.failed",
  schedule: noticeSchedule,
}

/** The mail that tells the operators of a backup without files that rows name. */
export const backupLacksFiles: JobKind<LackingBackup> = {
  name: "backup.lacks_files",
  schedule: backupFailed.schedule,
}

/** Begins a backup as a long job of the instance. Throws 409 `conflict` while another one runs. */
export async function requestBackup(tx: Tx): Promise<longJobs.Job> {
  const state = await stateForUpdate(tx)
  const last = state.job_id && (await longJobs.lookup(tx, INSTANCE_JOB, state.job_id))
  if (last && last.completed_at === null) {
    if (await isToBeMade(tx)) {
      fail("conflict", "A backup is running already. Wait until its job ends.", {
        reason: "running",
        job_id: last.id,
      })
    }
    await longJobs.finish(tx, INSTANCE_JOB, last.id, { error: NEVER_BEGUN })
  }
  const job = await longJobs.begin(tx, INSTANCE_JOB, { type: "backup.create" })
  await setState(tx, { ...state, job_id: job.id, started_at: now() })
  await enqueue(tx, backupCreate, { payload: { job_id: job.id }, project_id: null })
  return job
}

/** Begins a backup where the schedule says so. A backup that runs already is no error. */
export async function requestDueBackup(
  store: Store,
  { "backup.schedule": schedule }: Pick<Settings, "backup.schedule">,
): Promise<void> {
  if (schedule === "off") return
  const isDue = (due: number | undefined) => due !== undefined && millis() >= due
  const known = await backupState(store.read)
  if (known && !isDue(dueAt(schedule, known))) return
  const request = store.tx(async (tx) => {
    if (isDue(dueAt(schedule, await stateForUpdate(tx)))) await requestBackup(tx)
  })
  await request.catch((error) => {
    if (!(error instanceof ApiError)) throw error
  })
}

/** Far more than a retry waits. */
const AHEAD_SECONDS = 3600

/**
 * Whether work for a backup is there. It may have been lost with a damaged database. What was queued while the clock was
 * ahead would wait until the clock is there again: it goes.
 */
async function isToBeMade(tx: Tx): Promise<boolean> {
  const { id, name, run_at, state } = jobs
  const own = eq(name, backupCreate.name)
  const is_ahead = gt(run_at, secondsFromNow(AHEAD_SECONDS))
  await tx.delete(jobs).where(and(own, eq(state, READY), is_ahead))
  const left = await tx
    .select({ id })
    .from(jobs)
    .where(and(own, ne(state, DEAD)))
    .limit(1)
  return left.length > 0
}

const NEVER_BEGUN = {
  code: "conflict",
  message:
    "This backup was never made: the clock was put right before it began, or its work was lost. Another one took its place.",
}

/** Ends the backup that was running when a copy of the database was made: it belongs to the original. */
export async function endCopiedBackup(tx: Tx): Promise<void> {
  await tx.delete(jobs).where(and(eq(jobs.name, backupCreate.name), ne(jobs.state, DEAD)))
  const { job_id } = (await backupState(tx)) ?? {}
  if (job_id) await longJobs.finish(tx, INSTANCE_JOB, job_id, { error: OF_THE_ORIGINAL })
}

const OF_THE_ORIGINAL = {
  code: "conflict",
  message: "This backup ran when the copy was made. A restore does not continue it.",
}

/** Makes the backup, shows how far it is, and records how it ended. */
export const runBackup = (store: Store, backups: Backups): JobHandler<BackupOrder> => ({
  run: async ({ job_id }) => {
    const job = await longJobs.lookup(store.read, INSTANCE_JOB, job_id)
    if (job?.completed_at !== null) return {}
    const stop = new AbortController()
    const { signal } = stop
    let missing: MissingFiles | undefined
    const onMissing = (files: MissingFiles) => {
      missing = files
    }
    try {
      const onProgress = progressOf(store, job, stop)
      const backup = await backups.create({ onProgress, onMissing, signal })
      await raiseMark(store, backups.data_dir)
      const lacking = missing && (await isNamed(store.read, missing)) ? backup.missing : 0
      await store.tx((tx) => succeed(tx, job_id, backup, lacking))
      lastSuccess.set({}, Math.floor(millisFrom(backup.created_at) / 1000))
    } catch (error) {
      if (signal.aborted) return {} // it was cancelled, or is over
      if (error instanceof BackupRunning) return { retry: error.message, schedule: untilFree }
      const reason = error instanceof Error ? error.message : String(error)
      log.error("the backup failed", { error })
      await store.tx((tx) => recordFailure(tx, job_id, reason))
    }
    return {}
  },
  onDead: (tx, { job_id }, reason) => recordFailure(tx, job_id, reason),
})

/** One that was cancelled goes on to the end of its step, and one without a server may run. */
const untilFree: RetrySchedule = (attempt) => (attempt < 60 ? 60 : undefined)

const lastSuccess = metricGauge(
  "belfry_backup_last_success_timestamp",
  "When the last backup of this node was made, in seconds since 1970.",
)

/** Whether rows still name one of the files. The others were deleted with their rows while the backup was made. */
async function isNamed(db: Reader, missing: MissingFiles): Promise<boolean> {
  const named = [
    await namedAmong(db, messageFiles, missing.blobs),
    await namedAmong(db, inboundFiles, missing["inbound-blobs"]),
  ]
  return named.some(({ size }) => size > 0)
}

async function succeed(tx: Tx, job_id: string, backup: Backup, lacking: number) {
  const { id, size, verified, created_at: succeeded_at } = backup
  const state = await stateForUpdate(tx)
  const good = { succeeded_at, failing_since: null, lacking, told_at: null }
  await setState(tx, { ...state, ...good })
  if (lacking > (state.lacking ?? 0)) {
    const payload = { lacking, succeeded_at }
    await enqueue(tx, backupLacksFiles, { payload, project_id: null })
  }
  await longJobs.finish(tx, INSTANCE_JOB, job_id, { result: { id, size, verified } })
}

/** Between two mails about backups that fail. */
const TOLD_EVERY_MS = 24 * 3_600_000

async function recordFailure(tx: Tx, job_id: string, reason: string) {
  const state = await stateForUpdate(tx)
  const failing_since = state.failing_since ?? state.started_at ?? now()
  // Also where the clock was ahead then, and was put right.
  const { told_at } = state
  const is_due = told_at === null || Math.abs(millis() - millisFrom(told_at)) >= TOLD_EVERY_MS
  await setState(tx, { ...state, failing_since, told_at: is_due ? now() : state.told_at })
  if (is_due) {
    const payload = { reason: short(reason) ?? reason, failing_since }
    await enqueue(tx, backupFailed, { payload, project_id: null })
  }
  const error = { code: "internal_error", message: reason }
  await longJobs.finish(tx, INSTANCE_JOB, job_id, { error })
}

/** Writes how far the long job is, and aborts `stop` once it was cancelled. */
function progressOf(store: Store, { id, progress }: longJobs.Job, stop: AbortController) {
  let shown = progress.done // a second run begins with what the first one showed
  return async ({ done, total }: BackupProgress) => {
    try {
      const step = { done: done - shown, total }
      const goes_on = await store.tx((tx) => longJobs.progress(tx, INSTANCE_JOB, id, step))
      shown = done
      if (!goes_on) stop.abort(new Error("The backup was cancelled."))
    } catch (error) {
      log.warn("the progress of the backup could not be recorded", { error })
    }
  }
}

/** One mail to each operator. */
export const mailOperators = <Payload>(
  store: Store,
  mail: SystemMail,
  letterOf: (payload: Payload) => Omit<SystemLetter, "to">,
): JobHandler<Payload> => ({
  run: async (payload) => {
    const { operator, status } = consoleUsers
    await store.tx(async (tx) => {
      const active = and(eq(operator, true), eq(status, "active"))
      const operators = await tx.select().from(consoleUsers).where(active).limit(MOST_OPERATORS)
      for (const { email } of operators) await mail.send(tx, { to: email, ...letterOf(payload) })
    })
    return {}
  },
})

const MOST_OPERATORS = 100

export const failureLetter = ({ reason, failing_since }: BackupFailure) => ({
  kind: "backup_failed" as const,
  subject: "Belfry: backups fail",
  text: `Backups of this Belfry instance fail since ${failing_since}. The last reason:

  ${reason}

Earlier backups are as they were. Belfry tries again each hour. When you have removed the reason,
make one on the machine:

  belfry backup create
`,
})

/** Of a backup that lacks more files than the one before. */
export const lackingLetter = (backup: LackingBackup) => ({
  kind: "backup_lacks_files" as const,
  subject: "Belfry: a backup lacks files",
  text: `${lacksText(backup)}
They are missing in their folder, or damaged. Look whether the disk of that folder is mounted. The log of the
server names the first ones, and this command lists the missing ones, on the machine:

  belfry db check

Put them back from an earlier backup. The server keeps the newest backup with all files, however many it makes
after it.
`,
})
