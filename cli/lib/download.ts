import { createWriteStream } from "node:fs"
import { Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { exits, Failure, usage } from "./errors"

/** How long the server may be silent, before its answer and in the middle of it. */
const SILENT_MILLISECONDS = 30_000

interface DownloadOptions {
  most_bytes: number
  /** Gets the number of bytes so far. */
  onBytes?: (bytes: number) => void
}

/**
 * Downloads a URL into a new file. A URL without TLS must point to this machine. Throws Failure when the
 * download fails, or has more than `most_bytes`. No message shows the login or the query of the URL.
 */
export async function download(url: URL, target: string, options: DownloadOptions): Promise<void> {
  const is_here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
  if (url.protocol !== "https:" && !is_here) throw usage(`${shown(url)} must begin with https://`)
  const { most_bytes, onBytes = () => {} } = options
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error("no answer")), SILENT_MILLISECONDS)
  let bytes = 0
  const counted = new Transform({
    transform(part: Buffer, _, done) {
      bytes += part.length
      timer.refresh()
      onBytes(bytes)
      done(bytes > most_bytes ? new Error(`it has more than ${most_bytes} bytes`) : null, part)
    },
  })
  try {
    const response = await fetch(url, {
      signal: late.signal,
      ...(is_here && { proxy: false as const }),
    })
    if (!response.ok || !response.body) throw new Error(`the answer is ${response.status}`)
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0])
    await pipeline(body, counted, createWriteStream(target, { flags: "wx", mode: 0o600 }))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Failure(
      exits.unreachable,
      "unreachable",
      `${shown(url)} cannot be fetched: ${reason}.`,
    )
  } finally {
    clearTimeout(timer)
  }
}

const shown = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`
