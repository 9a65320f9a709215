import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { readJournal, type UpgradeStep } from "../../src/operations/upgrade/journal"
import { binary } from "../harness/binary"
import { leftover } from "../harness/leftovers"
import type { NextRelease } from "../harness/next-release"
import { freePort } from "../harness/ports"
import { lean } from "../scenarios/serve"

const SERVED_MILLISECONDS = 90_000
const LOOK_MILLISECONDS = 20
/** Between two emails. */
const PAUSE_MILLISECONDS = 50

export interface BoxOptions {
  release: NextRelease
  /** What is wrong with the later version. */
  fault?: string
  env?: Record<string, string>
  /** A shell starts the server again when it ends with another code than 0. */
  is_supervised?: boolean
  /** More options of `serve`. */
  words?: string[]
}

/** A server in a folder of its own, with its own copy of the program, on a port that stays. */
export async function upgradeBox(options: BoxOptions) {
  const { release, fault = "", env: more, is_supervised, words = [] } = options
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-box-")))
  for (const name of ["bin", "home"]) mkdirSync(join(folder, name))
  const program = join(folder, "bin/belfry")
  const data_dir = join(folder, "data")
  copyFileSync(binary, program)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...lean,
    PATH: process.env.PATH ?? "",
    HOME: join(folder, "home"),
    BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
    // Where a version hangs or the command is killed, the end of this is waited for.
    BELFRY_UPGRADE_READY: fault === "" ? "90s" : "20s",
    BELFRY_UPGRADE_SUPERVISOR: is_supervised ? "yes" : "auto",
    NEXT_VERSION: fault,
    ...more,
  }
  const own = (...words: string[]) => [program, ...words, "--data-dir", data_dir]
  const start = (words: string[]) => {
    const stdout = Bun.file(join(folder, "out"))
    const stderr = Bun.file(join(folder, "err"))
    return Bun.spawn(words, { cwd: folder, env, stdin: "ignore", stdout, stderr })
  }
  const run = async (...words: string[]) => ended(command(own(...words), { cwd: folder, env }))
  const made = await run("init", "--json")
  const { api_key } = JSON.parse(made.stdout) as { api_key: string }
  const serve = own("serve", "--listen", `127.0.0.1:${port}`, ...words)
  const loop = 'until "$@"; do sleep 0.1; done'
  start(is_supervised ? ["sh", "-c", loop, "supervisor", ...serve] : serve)
  const log = () => Bun.file(join(folder, "err")).text()
  await served(url, log)

  return {
    ...{ folder, program, data_dir, url, api_key, env, run },
    /** The version that serves, once one does. */
    served: () => served(url, log),
    /** `belfry upgrade` with the release, or with another file or URL. */
    upgrade: (...words: string[]) =>
      command(own("upgrade", ...(words[0] ? words : [release.archive]), ...keyOf(release)), {
        cwd: folder,
        env,
      }),
    /** Stops the server. */
    async stop() {
      for (const pid of processesIn(folder)) process.kill(pid, "SIGTERM")
      while (processesIn(folder).length > 0) await Bun.sleep(LOOK_MILLISECONDS)
    },
    /** Starts it again with another environment. */
    again(other: Record<string, string>) {
      Object.assign(env, other)
      start(serve)
    },
    /** The version that serves in the end: a person, or the supervisor, starts the server whenever none runs. */
    async restarted() {
      while ((await fetch(`${url}/readyz`).catch(() => undefined))?.status !== 200) {
        if (!is_supervised && !processesIn(folder).some((pid) => wordsOf(pid).includes("serve")))
          start(serve)
        await Bun.sleep(10 * LOOK_MILLISECONDS)
      }
      return served(url, log)
    },
    traffic: (domain?: string) => traffic(url, api_key, domain),
    /** Which of the messages are not there any more. */
    async missing(ids: readonly string[]) {
      const answers = await Promise.all(ids.map((id) => ask(url, api_key, `/v1/emails/${id}`)))
      return ids.filter((_, at) => answers[at] !== 200)
    },
    /** Every process of a program in the folder, or those that were started with this word. */
    processes: (word?: string) =>
      processesIn(folder).filter((pid) => word === undefined || wordsOf(pid).includes(word)),
    drafts: () => backupsIn(data_dir, ".draft"),
    /** Resolves when the upgrade makes its backup, or has made it. */
    async backup() {
      const before = backupsIn(data_dir, ".tar").length
      while (backupsIn(data_dir, ".draft").length === 0) {
        if (backupsIn(data_dir, ".tar").length > before) return
        await Bun.sleep(1)
      }
    },
    /** Resolves when the upgrade has come to the step. */
    async step(wanted: UpgradeStep) {
      while (readJournal(data_dir)?.step !== wanted) await Bun.sleep(1)
    },
    /** Resolves when a transaction has written a part of what it changes, and goes on. */
    async changes() {
      const { DATABASE_URL } = more ?? {}
      if (DATABASE_URL !== undefined) return await longMigrationOn(DATABASE_URL)
      while (walBytes(data_dir) < CHANGED_BYTES) await Bun.sleep(1)
    },
    async over() {
      while (readJournal(data_dir)) await Bun.sleep(LOOK_MILLISECONDS)
    },
    log,
    async [Symbol.asyncDispose]() {
      for (const pid of processesIn(folder, is_supervised)) process.kill(pid, "SIGKILL")
    },
  }
}

export type UpgradeBox = Awaited<ReturnType<typeof upgradeBox>>

function backupsIn(data_dir: string, ending: string): string[] {
  const folder = join(data_dir, "backups")
  if (!existsSync(folder)) return []
  return readdirSync(folder).filter((name) => name.endsWith(ending))
}

/** Far less than a long migration writes. */
const CHANGED_BYTES = 1024 * 1024

const walBytes = (data_dir: string): number =>
  statSync(join(data_dir, "belfry.db-wal"), { throwIfNoEntry: false })?.size ?? 0

/** Resolves when the long migration of a later version has run for a moment. */
async function longMigrationOn(url: string): Promise<void> {
  await using sql = new SQL(url, { max: 1 })
  const look = () => sql`
    SELECT pid FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND state = 'active' AND query LIKE 'CREATE TABLE next_version AS%'
      AND clock_timestamp() - query_start > interval '100 milliseconds'`
  while ((await look()).length === 0) await Bun.sleep(5)
}

const keyOf = ({ public_key }: NextRelease) => ["--public-key", public_key, "--json"]

function command(cmd: string[], around: { cwd: string; env: Record<string, string> }) {
  return Bun.spawn(cmd, { ...around, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
}

/** What a command said. */
export async function ended(child: ReturnType<typeof command>) {
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, stdout, stderr }
}

/** Every process whose program lies in the folder, and the shell around them. */
function processesIn(folder: string, is_supervised = false): number[] {
  const found = readdirSync("/proc").filter((pid) => {
    try {
      if (!/^\d+$/.test(pid)) return false
      const is_ours = readlinkSync(`/proc/${pid}/exe`).startsWith(folder)
      return is_ours || (is_supervised && readlinkSync(`/proc/${pid}/cwd`) === folder)
    } catch {
      return false
    }
  })
  return found.map(Number)
}

function wordsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}

async function served(url: string, log: () => Promise<string>): Promise<string> {
  const deadline = performance.now() + SERVED_MILLISECONDS
  while (performance.now() < deadline) {
    const ready = await fetch(`${url}/readyz`).catch(() => undefined)
    if (ready?.status === 200) {
      const { version } = (await (await fetch(`${url}/healthz`)).json()) as { version: string }
      return version
    }
    await Bun.sleep(LOOK_MILLISECONDS)
  }
  throw new Error(`nothing serves ${url} within ${SERVED_MILLISECONDS / 1000} s:\n${await log()}`)
}

const ask = async (url: string, key: string, path: string) =>
  (await fetch(url + path, { headers: { "x-api-key": key } })).status

/** Sends one email after the other within a domain until it is stopped. Answers the ids that were accepted. */
function traffic(url: string, api_key: string, domain = "mailbox.test") {
  let is_running = true
  const accepted: string[] = []
  const mail = { from: `me@${domain}`, to: `ann@${domain}`, subject: "s", text: "t" }
  const headers = { "x-api-key": api_key, "content-type": "application/json" }
  const send = async () => {
    while (is_running) {
      const request = { method: "POST", headers, body: JSON.stringify(mail) }
      const reply = await fetch(`${url}/v1/emails`, request).catch(() => undefined)
      if (reply?.status === 201) accepted.push(((await reply.json()) as { id: string }).id)
      else await reply?.body?.cancel()
      await Bun.sleep(PAUSE_MILLISECONDS)
    }
  }
  const running = send()
  return {
    async stop() {
      is_running = false
      await running
      return accepted
    },
  }
}
