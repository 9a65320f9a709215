import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"
import { monotonic } from "../../src/core/time"
import { pauseQueues } from "../../src/store/trial-file"
import { openClient } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { NOBODY } from "../lib/profiles"
import { pause } from "../lib/time"
import { firstLine, lastOf } from "./child-output"

const LOOK_MILLISECONDS = 500
const STOP_MILLISECONDS = 30_000
const LAST_LINES = 3
/** A migration of a large database takes minutes. */
const MIGRATE_MILLISECONDS = 3_600_000

export interface TrialOptions {
  /** The new program. */
  program: string
  version: string
  /** A folder with a copy of the database as `belfry.db`, and of the blobs. */
  folder: string
  /** Where the folder of the server is, for its master key. */
  data_dir: string
  /** `--config` and `--set` as the server has them. */
  words: readonly string[]
  environment: Record<string, string | undefined>
  /** How long it has to work. */
  trial_ms: number
  ready_ms: number
  /** Hears how long it has run. */
  onProgress: (elapsed_ms: number) => Promise<void>
}

/**
 * Migrates the copy with the new program and lets it serve the copy, on free ports of the loopback, for as
 * long as a trial takes. Queues are paused: nothing is delivered. Answers the migrations that it applied.
 * Throws Failure when it fails in any way.
 */
export async function tryRelease(options: TrialOptions): Promise<string[]> {
  const { folder, data_dir } = options
  // A rotation that has not ended has sealed with two keys.
  for (const name of ["master.key", "master.key.next", "master.key.old"]) {
    const key = join(data_dir, name)
    if (existsSync(key)) copyFileSync(key, join(folder, name))
  }
  pauseQueues(join(folder, "belfry.db"), DELIVERING)
  const applied = await migrateWith(options.program, trialWords(options), options.environment)
  await serveCopy(options)
  return applied
}

/** The queues that deliver something. */
const DELIVERING = ["email", "webhooks"]

/** On its own ports and files, whatever the settings say. It makes no backups: old ones would go. */
export const trialWords = ({ folder, words }: Pick<TrialOptions, "folder" | "words">): string[] => [
  ...words,
  ...["--data-dir", folder],
  ...[
    "database_url=none",
    "database_direct_url=none",
    "http.listen=127.0.0.1:0",
    "smtp.submission.listen=127.0.0.1:0",
    "smtp.submission.implicit_listen=127.0.0.1:0",
    "smtp.inbound.listen=127.0.0.1:0",
    "mailbox.listen=127.0.0.1:0",
    "storage.ballast_mb=0",
    `storage.sqlite.path=${join(folder, "belfry.db")}`,
    `storage.blobs.dir=${join(folder, "blobs")}`,
    `backup.dir=${join(folder, "backups")}`,
    "backup.schedule=off",
  ].flatMap((pair) => ["--set", pair]),
]

/** Applies the migrations of a program, by itself. Answers their names. Throws Failure with what it says where one fails. */
export async function migrateWith(
  program: string,
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<string[]> {
  const child = Bun.spawn([program, "migrate", "--json", ...words], {
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: MIGRATE_MILLISECONDS,
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (child.exitCode === 0) return (JSON.parse(out) as { applied: string[] }).applied
  throw failed("The new version cannot migrate the data", err)
}

/** The migrations that a program would apply, with nothing changed. Throws Failure where it cannot tell. */
export async function pendingWith(
  program: string,
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<string[]> {
  const cmd = [program, "migrate", "--dry-run", "--json", ...words]
  const child = Bun.spawn(cmd, {
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (child.exitCode === 0) return (JSON.parse(out) as { pending: string[] }).pending
  throw failed("The new version cannot read the data", err)
}

async function serveCopy(options: TrialOptions): Promise<void> {
  const { program, trial_ms, ready_ms, onProgress } = options
  const child = Bun.spawn([program, "serve", "--json", ...trialWords(options)], {
    env: options.environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const told = lastOf(child.stderr)
  try {
    const url = await Promise.race([urlOf(child.stdout), pause(ready_ms)])
    if (url === undefined)
      throw failed(`The new version is not ready within ${ready_ms / 1000} s on a copy`, told())
    const began = monotonic()
    for (;;) {
      await demandWell(url, options.version, () => told())
      const elapsed = monotonic() - began
      await onProgress(Math.min(elapsed, trial_ms))
      if (elapsed >= trial_ms) break
      await pause(Math.min(LOOK_MILLISECONDS, trial_ms - elapsed))
    }
    child.kill("SIGTERM")
    await Promise.race([child.exited, pause(STOP_MILLISECONDS)])
    if (child.exitCode !== 0) throw failed("The new version does not stop in order", told())
  } finally {
    child.kill("SIGKILL")
    await child.exited
  }
}

/** It is ready, and the version that it should be. */
async function demandWell(url: string, version: string, told: () => string): Promise<void> {
  const client = openClient({ ...NOBODY, url, api_key: null }, { timeout: 10_000, dry_run: false })
  const ready = await client.plain("/readyz").catch(() => undefined)
  if (ready?.status !== 200) {
    const said = ready ? JSON.stringify(ready.body) : told()
    throw failed("The new version does not work on a copy of the data", said)
  }
  const { body } = await client.plain("/healthz")
  const found = (body as { version?: string }).version
  if (found !== version) throw failed(`The new version calls itself ${found}, not ${version}`, "")
}

function failed(what: string, said: string): Failure {
  const last = saidBy(said)
  const hint = "nothing was changed; the version of before goes on"
  return new Failure(exits.failed, "trial_failed", last ? `${what}: ${last}` : `${what}.`, {
    hint,
  })
}

/** The message of an error body, or the last lines. */
function saidBy(text: string): string {
  const lines = text.trim().split("\n")
  const body = lines.findLast((line) => line.startsWith('{"error":'))
  if (body === undefined) return lines.slice(-LAST_LINES).join("\n")
  return (JSON.parse(body) as { error: { message: string } }).error.message
}

/** The address in the first line of `serve --json`; undefined where none comes before the process ends. */
async function urlOf(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const line = await firstLine(stream)
  return /^\{.*"url":"([^"]+)"/.exec(line ?? "")?.[1]
}
