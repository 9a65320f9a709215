import { join } from "node:path"
import { locate } from "../harness/peers"

/** Time after the last request in which every answer must come; wrk itself waits for nothing. */
export const TAIL_SECONDS = 1

export interface Load {
  url: string
  headers: Record<string, string>
  /** A file with the body of every request. */
  body: string
  connections: number
  seconds: number
}

export interface Answers {
  per_second: number
  /** Answers that came, every one of them 2xx. */
  answered: number
  p50_ms: number
  p99_ms: number
}

/**
 * Posts with wrk as fast as the server answers, on one thread. Rejects when there was any error,
 * or when a request stayed without its answer: then the figures mean nothing.
 */
export async function post({ url, headers, body, connections, seconds }: Load): Promise<Answers> {
  const given = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`])
  const length = `${Math.ceil(seconds) + TAIL_SECONDS}s`
  const script = join(import.meta.dir, "post.lua")
  const flags = ["-t1", `-c${connections}`, `-d${length}`, "-s", script, ...given]
  const child = Bun.spawn({
    cmd: [locate("wrk") ?? "wrk", ...flags, url, "--", String(seconds), body],
    stdout: "pipe",
    stderr: "pipe",
  })
  const [text, trouble] = await Promise.all([child.stdout.text(), child.stderr.text()])
  const line = text.split("\n").findLast((one) => one.startsWith("{"))
  if ((await child.exited) !== 0 || !line) throw new Error(`wrk failed: ${text}${trouble}`)
  const told = JSON.parse(line) as Told
  if (told.errors > 0 || told.answered !== told.posted) throw new Error(`not clean: ${text}`)
  return { ...told, per_second: told.answered / told.seconds }
}

interface Told extends Omit<Answers, "per_second"> {
  posted: number
  seconds: number
  errors: number
}
