import { createWriteStream } from "node:fs"
import { Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { exits, Failure, usage } from "./errors"

/** How long the server may be silent before its answer begins. */
const ANSWER_MILLISECONDS = 30_000

interface DownloadOptions {
  most_bytes: number
  /** Hears how many bytes came so far. */
  onBytes?: (bytes: number) => void
}

/**
 * Writes what is at a URL into a new file. Without TLS only this machine itself is asked. Throws Failure
 * where nothing comes, or more than `most_bytes`.
 */
export async function download(url: URL, target: string, options: DownloadOptions): Promise<void> {
  const is_here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
  if (url.protocol !== "https:" && !is_here) throw usage(`${url.href} must begin with https://`)
  const { most_bytes, onBytes = () => {} } = options
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error("no answer")), ANSWER_MILLISECONDS)
  let bytes = 0
  const counted = new Transform({
    transform(part: Buffer, _, done) {
      bytes += part.length
      onBytes(bytes)
      done(bytes > most_bytes ? new Error(`it has more than ${most_bytes} bytes`) : null, part)
    },
  })
  try {
    const response = await fetch(url, {
      signal: late.signal,
      ...(is_here && { proxy: false as const }),
    })
    clearTimeout(timer)
    if (!response.ok || !response.body) throw new Error(`the answer is ${response.status}`)
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0])
    await pipeline(body, counted, createWriteStream(target, { flags: "wx", mode: 0o600 }))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Failure(exits.unreachable, "unreachable", `${url.href} cannot be fetched: ${reason}.`)
  } finally {
    clearTimeout(timer)
  }
}
