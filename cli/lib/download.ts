import { createWriteStream } from "node:fs"
import { Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { exits, Failure, usage } from "./errors"

const SILENT_MILLISECONDS = 30_000

const MOST_MILLISECONDS = 3_600_000

interface DownloadOptions {
  most_bytes: number
  /** Gets the number of bytes so far. */
  onBytes?: (bytes: number) => void
}

/**
 * Downloads a URL into a new file. A URL without TLS must point to this machine, also one that another URL leads to.
 * Throws Failure when the download fails, or has more than `most_bytes`. No message shows the login or the query of
 * the URL.
 */
export async function download(url: URL, target: string, options: DownloadOptions): Promise<void> {
  const is_here = isHere(url)
  if (url.protocol !== "https:" && !is_here) throw usage(`${shown(url)} must begin with https://`)
  const { most_bytes, onBytes = () => {} } = options
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error("no answer")), SILENT_MILLISECONDS)
  const end = setTimeout(() => late.abort(new Error("it takes too long")), MOST_MILLISECONDS)
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
    const leads_to = new URL(response.url)
    if (leads_to.protocol !== "https:" && !isHere(leads_to))
      throw new Error(`it leads to ${shown(leads_to)}, which does not begin with https://`)
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
    clearTimeout(end)
  }
}

const shown = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`

const isHere = ({ hostname }: URL): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
