import { rmSync } from "node:fs"
import { join } from "node:path"
import { binary, makeHome, runBinary } from "../harness/binary"
import { readLines } from "../harness/lines"
import { seen } from "../harness/published"
import { NEVER_MS } from "../harness/waits"

/** Settings that no test of another thing wants to wait for. */
export const lean = {
  BELFRY_STORAGE_BALLAST_MB: "0",
  BELFRY_STORAGE_MIN_FREE_MB: "0",
  BELFRY_SMTP_SUBMISSION_LISTEN: "127.0.0.1:0",
  BELFRY_SMTP_INBOUND_LISTEN: "127.0.0.1:0",
}

/** The settings of a relay on this machine, which may be written to from example.test. */
export const relaySettings = (port: number, more: Record<string, string> = {}) => ({
  ...lean,
  BELFRY_DELIVERY_PROVIDER: "smtp",
  BELFRY_PROVIDERS_SMTP_HOST: "127.0.0.1",
  BELFRY_PROVIDERS_SMTP_PORT: String(port),
  BELFRY_PROVIDERS_SMTP_TLS: "none",
  BELFRY_SENDING_DOMAINS: "example.test",
  ...more,
})

/** A home that outlives each server in it, and goes with its scope. */
export function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

/** Runs `belfry init` and answers the key that it shows once. */
export async function initialise(home: string, env: Record<string, string>): Promise<string> {
  const words = ["init", "--json", "--data-dir", join(home, "belfry")]
  const made = await runBinary(words, { home, env })
  if (made.code !== 0) throw new Error(`belfry init: ${made.stderr}`)
  return (JSON.parse(made.stdout) as { api_key: string }).api_key
}

export interface ServeOptions {
  home?: string
  api_key?: string
  env?: Record<string, string>
  args?: string[]
  /** Runs in place of the binary under test. */
  program?: string
  /** Hears each line of its log, also before it is ready. */
  onStderr?: (line: string) => unknown
}

/** A running `belfry serve` on a free port of the loopback. */
export async function startServe(options: ServeOptions = {}) {
  const home = options.home ?? makeHome()
  const env = { ...lean, BELFRY_MAILBOX_LISTEN: "127.0.0.1:0", ...options.env }
  const api_key = options.api_key ?? (await initialise(home, env))
  const folder = ["--data-dir", join(home, "belfry")]
  const child = Bun.spawn({
    cmd: [
      options.program ?? binary,
      "serve",
      "--json",
      "--listen",
      "127.0.0.1:0",
      ...folder,
      ...(options.args ?? []),
    ],
    cwd: join(home, "work"),
    env: { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: join(home, "tmp"), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const stdout = readLines(child.stdout)
  const stderr = readLines(child.stderr, options.onStderr)
  const ended = child.exited.then((code) => {
    throw new Error(`serve ended with ${code}:\n${stderr.all.join("\n")}`)
  })
  ended.catch(() => {})
  const ready = stdout.first((line) => line.startsWith("{"))
  const { url } = JSON.parse(await Promise.race([ready, ended])) as { url: string }
  return {
    home,
    url,
    api_key,
    pid: child.pid,
    stderr,
    exited: child.exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async request(path: string, init: RequestInit = {}) {
      const headers = new Headers(init.headers)
      headers.set("authorization", `Bearer ${api_key}`)
      if (init.body) headers.set("content-type", "application/json")
      return seen(init.method ?? "GET", path, await fetch(`${url}${path}`, { ...init, headers }))
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM")
      const late = setTimeout(() => child.kill("SIGKILL"), NEVER_MS)
      await child.exited
      clearTimeout(late)
    },
  }
}
