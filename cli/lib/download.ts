import { exits, Failure, usage } from "./errors"
import { isLoopback } from "./profiles"

const SILENT_MILLISECONDS = 30_000

const MOST_MILLISECONDS = 3_600_000

interface DownloadOptions {
  most_bytes: number
  /** Gets the number of bytes so far. */
  onBytes?: (bytes: number) => void
}

/**
 * The bytes at a URL. One without TLS must point to this machine, also one that another URL leads to. Throws Failure
 * when the download fails, or has more than `most_bytes`. No message shows the login or the query of the URL.
 */
export async function download(
  url: URL,
  { most_bytes, onBytes = () => {} }: DownloadOptions,
): Promise<Buffer> {
  const is_here = isLoopback(url)
  if (url.protocol !== "https:" && !is_here) throw usage(`${shown(url)} must begin with https://`)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error("no answer")), SILENT_MILLISECONDS)
  const end = setTimeout(() => late.abort(new Error("it takes too long")), MOST_MILLISECONDS)
  try {
    const proxy = is_here && { proxy: false as const }
    const response = await fetch(url, { signal: late.signal, ...proxy })
    const leads_to = new URL(response.url)
    if (leads_to.protocol !== "https:" && !isLoopback(leads_to))
      throw new Error(`it leads to ${shown(leads_to)}, which does not begin with https://`)
    if (!response.ok || !response.body) throw new Error(`the answer is ${response.status}`)
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of response.body as AsyncIterable<Uint8Array>) {
      timer.refresh()
      bytes += part.length
      onBytes(bytes)
      if (bytes > most_bytes) throw new Error(`it has more than ${most_bytes} bytes`)
      parts.push(part)
    }
    return Buffer.concat(parts)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const message = `${shown(url)} cannot be fetched: ${reason}.`
    throw new Failure(exits.unreachable, "unreachable", message)
  } finally {
    clearTimeout(timer)
    clearTimeout(end)
  }
}

const shown = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`
