import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { type Lines, readLines } from "./lines"
import { seen } from "./published"
import { NEVER_MS } from "./waits"

/** The compiled binary under test. */
export const binary = resolve(process.env.BELFRY_TEST_BINARY ?? "dist/belfry")

/** What `up --json` prints first. Ports nobody listens on are null. */
export interface Ready {
  url: string
  api_key: string
  project_id: string
  data_dir: string
  smtp: { submission: number | null; inbound: number | null; mailbox: number | null }
}

export interface Result {
  code: number
  stdout: string
  stderr: string
}

export interface Options {
  /** More arguments of `up`. */
  args?: string[]
  /** More environment; by default there is PATH, and folders of its own for everything else. */
  env?: Record<string, string>
  /** Where it lives. Given, it stays for the next start; else an empty one, removed at the end. */
  home?: string
  /** Put before the binary, such as `["strace", "-f"]`. Signals then go to that program. */
  wrap?: string[]
  /** Runs in place of the binary under test: a copy, or another version of it. */
  program?: string
  ready_timeout_ms?: number
}

/** A running `belfry up`. Leaving its scope stops it and removes its folder. */
export interface Belfry extends AsyncDisposable, Ready {
  home: string
  pid: number
  stdout: Lines
  stderr: Lines
  /** Resolves to the exit code, 128 + n after a signal. */
  exited: Promise<number>
  /** The first JSON line after the ready line, past or to come, that `match` accepts. */
  next(match: (line: Record<string, unknown>) => boolean, timeout_ms?: number): Promise<unknown>
  /** A request to its API as its first project. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** Another `belfry` process with the same folders, thus the same profile. */
  cli(...args: string[]): Promise<Result>
  kill(signal: NodeJS.Signals): void
  /** SIGTERM; resolves to the exit code. SIGKILL when it does not end. */
  stop(): Promise<number>
}

/** An empty folder with everything in it that a user's home would hold. */
export function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "belfry-home-"))
  for (const name of ["config", "data", "state", "cache", "tmp", "work"])
    mkdirSync(join(home, name))
  return home
}

/** Starts `belfry up --json` in an empty working directory and waits for its ready line. */
export async function startBelfry(options: Options = {}): Promise<Belfry> {
  const home = options.home ?? makeHome()
  const leave = () => {
    if (!options.home) rmSync(home, { recursive: true, force: true })
  }
  const own = options.args?.includes("--data-dir") ? [] : ["--data-dir", join(home, "belfry")]
  const command = ["up", "--json", "--port", "0", ...own]
  const child = launch(home, [...command, ...(options.args ?? [])], options)
  const stdout = readLines(child.stdout)
  const stderr = readLines(child.stderr)
  const stop = async () => {
    await end(child)
    await Promise.all([stdout.ended, stderr.ended])
    return child.exitCode ?? 128
  }
  try {
    const line = await firstLine(child, stdout, options.ready_timeout_ms ?? NEVER_MS)
    const ready: Ready = JSON.parse(line)
    return {
      ...ready,
      home,
      pid: child.pid,
      stdout,
      stderr,
      exited: child.exited,
      next: async (match, timeout_ms) =>
        JSON.parse(await stdout.first((text) => text !== line && match(parse(text)), timeout_ms)),
      request: (path, init) => ask(ready, path, init),
      cli: (...args) => runBinary(args, { home, ...(options.env ? { env: options.env } : {}) }),
      kill: (signal) => child.kill(signal),
      stop,
      [Symbol.asyncDispose]: async () => {
        await stop()
        leave()
      },
    }
  } catch (error) {
    await stop()
    leave()
    throw new Error(`belfry up did not get ready (${error}):\n${stderr.all.join("\n")}`)
  }
}

/** Runs one command of the binary to its end, with nothing on stdin unless `input` is given. */
export async function runBinary(
  args: string[],
  options: Options & { input?: string } = {},
): Promise<Result> {
  const home = options.home ?? makeHome()
  try {
    const child = launch(home, args, options, options.input)
    const late = setTimeout(() => child.kill("SIGKILL"), NEVER_MS)
    const [stdout, stderr, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    clearTimeout(late)
    return { code, stdout, stderr }
  } finally {
    if (!options.home) rmSync(home, { recursive: true, force: true })
  }
}

function launch(home: string, args: string[], options: Options, input?: string) {
  const { env, wrap = [], program = binary } = options
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`./install.sh build\``)
  return Bun.spawn({
    cmd: [...wrap, program, ...args],
    cwd: join(home, "work"),
    env: { ...folders(home), ...env },
    stdin: input === undefined ? "ignore" : Buffer.from(input),
    stdout: "pipe",
    stderr: "pipe",
  })
}

/** The environment of a program that keeps everything in this home. */
export const folders = (home: string) => ({
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  HOME: home,
  XDG_CONFIG_HOME: join(home, "config"),
  XDG_DATA_HOME: join(home, "data"),
  XDG_STATE_HOME: join(home, "state"),
  XDG_CACHE_HOME: join(home, "cache"),
  TMPDIR: join(home, "tmp"),
})

type Child = ReturnType<typeof launch>

async function firstLine(child: Child, stdout: Lines, timeout_ms: number): Promise<string> {
  const ended = child.exited.then((code) => {
    throw new Error(`exit code ${code}`)
  })
  return await Promise.race([stdout.first((line) => line.startsWith("{"), timeout_ms), ended])
}

async function end(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill("SIGTERM")
  const late = setTimeout(() => child.kill("SIGKILL"), NEVER_MS)
  await child.exited
  clearTimeout(late)
}

/** A line that is no JSON object matches nothing. */
function parse(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}

/** A request to the API of a running `up` as its first project. */
export async function ask(
  { url, api_key }: Pick<Ready, "url" | "api_key">,
  path: string,
  init: RequestInit = {},
) {
  const headers = new Headers(init.headers)
  if (!headers.has("authorization")) headers.set("authorization", `Bearer ${api_key}`)
  if (init.body && !headers.has("content-type")) headers.set("content-type", "application/json")
  const answer = await fetch(`${url}${path}`, { ...init, headers })
  return seen(init.method ?? "GET", path, answer)
}
