import { type StdioOptions, spawn } from "node:child_process"
import {
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { codeOf } from "../../src/core/faults"
import { monotonic } from "../../src/core/time"
import { pause } from "../lib/time"

/** A server that runs on this machine, as Linux describes it. */
export interface ServerProcess {
  pid: number
  /** The path of its program. */
  program: string
  /** Its arguments, without the program and without what only that one start was asked to do. */
  words: string[]
  cwd: string
  environment: Record<string, string>
}

const POLL_MILLISECONDS = 50

export const SOCKET = "admin.sock"
const SOCKETS = "/proc/net/unix"

/**
 * The server of any version whose admin socket lies in the folder, under whichever path it was started with.
 * Undefined when none runs, or when this process may not see the processes of its user.
 */
export function serverOf(data_dir: string): ServerProcess | undefined {
  const folder = realPathOf(data_dir)
  if (folder === undefined) return undefined
  // The newest first: a killed server may leave its line for a moment.
  for (const { inode, path } of adminSockets().reverse()) {
    if (isAbsolute(path) && realPathOf(dirname(path)) !== folder) continue
    const pid = readdirSync("/proc").find((name) => /^\d+$/.test(name) && holds(name, inode))
    const server = pid === undefined ? undefined : described(Number(pid))
    if (server && realPathOf(dirname(resolve(server.cwd, path))) === folder) return server
  }
  return undefined
}

/** Undefined for what is gone, has ended or belongs to another user. */
export function ifThere<Found>(read: () => Found): Found | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const realPathOf = (path: string) => ifThere(() => realpathSync(path))

/**
 * Listeners with the name of our socket, as Linux lists them; none on another system. A path is as its server gave
 * it: it may be a relative one.
 */
export function adminSockets(list = SOCKETS): { inode: string; path: string }[] {
  const lines = existsSync(list) ? readFileSync(list, "utf8").split("\n") : []
  return lines.flatMap((line) => {
    const [, inode = "", path = ""] = /^(?:\S+\s+){6}(\d+) (.+)$/.exec(line) ?? []
    return basename(path) === SOCKET ? [{ inode, path }] : []
  })
}

function holds(pid: string, inode: string): boolean {
  const folder = `/proc/${pid}/fd`
  const names = ifThere(() => readdirSync(folder)) ?? []
  return names.some((name) => linkOf(join(folder, name)) === `socket:[${inode}]`)
}

const linkOf = (path: string) => ifThere(() => readlinkSync(path))

const LISTENS = "0A"

/** The process that listens on a port of TCP; undefined where this user may not see it, and on other systems. */
export function listenerOn(port: number): { pid: number; name: string } | undefined {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const lists = ["tcp", "tcp6"].map((name) => `/proc/net/${name}`)
  const rows = lists.flatMap((list) => ifThere(() => readFileSync(list, "utf8").split("\n")) ?? [])
  for (const row of rows) {
    const [, local = "", , state, , , , , , inode = ""] = row.trim().split(/\s+/)
    if (state !== LISTENS || !local.endsWith(wanted)) continue
    const pid = readdirSync("/proc").find((name) => /^\d+$/.test(name) && holds(name, inode))
    const name = pid && ifThere(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim())
    if (name) return { pid: Number(pid), name }
  }
  return undefined
}

/** Linux appends this to the path of a program whose file was removed. */
const GONE = / \(deleted\)$/

/** The path that the program of the process was started from. */
export const programOf = (pid: number): string | undefined =>
  linkOf(`/proc/${pid}/exe`)?.replace(GONE, "")

/**
 * Whether another program now lies at the path that this process was started from. Then the link to its own
 * program names that path as removed. An emulator of a processor shows the path as it is, and a file of its own.
 */
export function isReplaced(program = process.execPath, running = "/proc/self/exe"): boolean {
  const path = program.replace(GONE, "")
  if (linkOf(running) === path) return false
  const [there, own] = [path, running].map((one) => statSync(one, { throwIfNoEntry: false }))
  return there !== undefined && own !== undefined && there.ino !== own.ino
}

/**
 * Options of one start. A later one with `--new` finds a database and ends, `--new-key` would revoke the key
 * again, and `--hold` would hold what was accepted since.
 */
const ONCE = new Set(["--new", "--new-key", "--hold"])

const described = (pid: number): ServerProcess | undefined =>
  ifThere(() => {
    const list = (name: string) => readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0")
    const pairs = list("environ").filter((one) => one.includes("="))
    const words = list("cmdline").slice(1, -1)
    return {
      pid,
      program: readlinkSync(`/proc/${pid}/exe`).replace(GONE, ""),
      words: words.filter((word) => !ONCE.has(word)),
      cwd: readlinkSync(`/proc/${pid}/cwd`),
      environment: Object.fromEntries(
        pairs.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]),
      ),
    }
  })

/** Programs that start a service again when it ends, by the name of their process. */
const SUPERVISORS = ["runsv", "s6-supervise", "supervise", "supervisord", "monit", "nomad", "pm2"]

/**
 * Whether another program starts the server again. systemd says so in the environment; other programs are
 * known by their names.
 */
export function isSupervised({ pid, environment }: ServerProcess): boolean {
  // Children of the process inherit the variable, so its number tells which process systemd started.
  if (environment.SYSTEMD_EXEC_PID === String(pid)) return true
  const parent = /^PPid:\s+(\d+)/m.exec(statusOf(pid))?.[1]
  const name = parent === undefined ? "" : /^Name:\s+(.*)$/m.exec(statusOf(Number(parent)))?.[1]
  return SUPERVISORS.includes(name ?? "")
}

/** The first process of a container: when it ends, everything in the container ends. */
export const isContainer = ({ pid }: ServerProcess): boolean => pid === 1

const statusOf = (pid: number) => ifThere(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? ""

export function isAlive(pid: number): boolean {
  const state = /^State:\s+(\S)/m.exec(statusOf(pid))?.[1]
  return state !== undefined && state !== "Z" && state !== "X"
}

/** Asks the process to stop, and kills it after `patience_ms`. Resolves when the process has ended. */
export async function stopProcess(pid: number, patience_ms: number): Promise<void> {
  signal(pid, "SIGTERM")
  const deadline = monotonic() + patience_ms
  while (isAlive(pid)) {
    if (monotonic() > deadline) signal(pid, "SIGKILL")
    await pause(POLL_MILLISECONDS)
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error
  }
}

/**
 * What starts the program at this path as the server was started, as a process that goes on when this one ends, and
 * answers its id. The outputs of the server are opened now, because one that has ended has none. What cannot be opened
 * again, such as a socket, becomes `instead`.
 */
export function starterLike(server: ServerProcess, program: string, instead: string): () => number {
  const { pid, words, cwd, environment: env } = server
  const output = (descriptor: number) =>
    ifThere(() => openSync(`/proc/${pid}/fd/${descriptor}`, "a")) ?? openSync(instead, "a", 0o600)
  const stdio: StdioOptions = ["ignore", output(1), output(2)]
  return () => {
    const child = spawn(program, words, { cwd, env, detached: true, stdio })
    child.on("error", () => {}) // the missing id reports the failure
    child.unref()
    if (child.pid === undefined) throw new Error(`${program} cannot be started`)
    return child.pid
  }
}
