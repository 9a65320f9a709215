import { nextTurn } from "../core/time"
import { asDownload } from "../lib/file-names"

/** A stored message as its own media type (RFC 822 bytes, untouched). */
export const rawMessage = (bytes: Uint8Array) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: { "content-type": "message/rfc822", "x-content-type-options": "nosniff" },
  })

/** Always as a download: what a stranger attached must not run in our origin. */
export const download = ({
  filename,
  content_type,
  bytes,
}: {
  filename: string
  content_type: string
  bytes: Uint8Array
}) =>
  new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": content_type,
      "content-disposition": asDownload(filename),
      "content-security-policy": "sandbox; default-src 'none'",
      "cache-control": "private, no-store",
      "x-content-type-options": "nosniff",
    },
  })

/**
 * An answer that is made while the caller takes it, so that a file of any length needs little memory.
 * Other requests run between two pieces. `signal` says that the caller hung up.
 */
export function streamedFile(
  pieces: AsyncGenerator<string, undefined>,
  signal: AbortSignal,
  headers: Record<string, string>,
): Response {
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = signal.aborted
        ? { value: undefined, done: true }
        : await pieces.next()
      if (value !== undefined) controller.enqueue(encoder.encode(value))
      if (done) controller.close()
      await nextTurn()
    },
    cancel: async () => void (await pieces.return(undefined)),
  })
  const private_file = { "cache-control": "private, no-store", "x-content-type-options": "nosniff" }
  return new Response(stream, { headers: { ...private_file, ...headers } })
}

const encoder = new TextEncoder()
