import { nextTurn } from "../core/time"

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
  return new Response(stream, { headers: { ...headers, ...private_file } })
}

const encoder = new TextEncoder()
