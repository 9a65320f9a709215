import { Database } from "bun:sqlite"
import { join } from "node:path"
import type { Subprocess } from "bun"
import { binary } from "../harness/binary"
import { readLines } from "../harness/lines"

const READY_MS = 30_000

/** Settings of a server; undefined leaves out one that it would get otherwise. */
export type Environment = Record<string, string | undefined>

/** A running `belfry serve`, in a folder that its caller made. */
export interface Serving extends AsyncDisposable {
  url: string
  headers: Record<string, string>
  pid: number
  /** Milliseconds from its start to the first 200 of `/healthz`. */
  started_ms: number
  /** `kill -9`: what was acknowledged must be on disk at any moment. */
  kill(): Promise<void>
  /** Lets what runs end, as a service manager does. */
  stop(): Promise<void>
}

/** Makes the first account and key with `init`, and returns the key. `program` is another binary. */
export async function initialise(
  folder: string,
  environment: Environment = {},
  program = binary,
): Promise<string> {
  const child = launch(folder, ["init", "--json"], environment, program)
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`init failed: ${await child.stderr.text()}`)
  return (JSON.parse(text) as { api_key: string }).api_key
}

/** Serves from a folder that `initialise` made. */
export async function serve(
  folder: string,
  api_key: string,
  environment: Environment = {},
  program = binary,
): Promise<Serving> {
  const begun = performance.now()
  const child = launch(folder, ["serve", "--json"], environment, program)
  const lines = readLines(child.stdout)
  const trouble = readLines(child.stderr)
  const kill = async () => {
    child.kill("SIGKILL")
    await child.exited
  }
  const stop = async () => {
    child.kill("SIGTERM")
    await child.exited
  }
  try {
    const line = await lines.first((text) => text.startsWith("{"), READY_MS)
    const { url } = JSON.parse(line) as { url: string }
    const health = await fetch(`${url}/healthz`)
    if (health.status !== 200) throw new Error(`/healthz answered ${health.status}`)
    const started_ms = performance.now() - begun
    const headers = { Authorization: `Bearer ${api_key}` }
    return { url, headers, pid: child.pid, started_ms, kill, stop, [Symbol.asyncDispose]: kill }
  } catch (error) {
    await kill()
    throw new Error(`serve did not get ready: ${error}\n${trouble.all.join("\n")}`)
  }
}

function launch(folder: string, args: string[], environment: Environment, program: string) {
  return Bun.spawn({
    cmd: [program, ...args],
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? "/usr/bin:/bin",
      HOME: folder,
      BELFRY_DATA_DIR: join(folder, "data"),
      BELFRY_HTTP_LISTEN: "127.0.0.1:0",
      BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
      BELFRY_SMTP_SUBMISSION_LISTEN: "127.0.0.1:0",
      BELFRY_SMTP_INBOUND_LISTEN: "127.0.0.1:0",
      ...environment,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  }) satisfies Subprocess
}

/** Opens the database of a server that is gone, for counting. */
export const databaseOf = (folder: string) => new Database(join(folder, "data", "belfry.db"))

export function countRows(database: Database, table: string): number {
  const row = database.query(`SELECT count(*) AS rows FROM ${table}`).get() as { rows: number }
  return row.rows
}
