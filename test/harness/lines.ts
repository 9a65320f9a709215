import { NEVER_MS } from "./waits"

const KEPT_LINES = 5_000

/** The lines of a stream, kept for those who ask later and offered to those who wait. */
export interface Lines {
  all: string[]
  /** The first line, past or to come, that `match` accepts. Rejects after `timeout_ms`. */
  first(match: (line: string) => boolean, timeout_ms?: number): Promise<string>
  /** Resolves when the stream has ended. */
  ended: Promise<void>
}

/** Reads a stream to its end, so that its writer never blocks on a full pipe. */
export function readLines(
  stream: ReadableStream<Uint8Array>,
  hear: (line: string) => unknown = () => {},
): Lines {
  const all: string[] = []
  const waiting = new Set<(line: string) => void>()
  const take = (line: string) => {
    hear(line)
    all.push(line)
    if (all.length > KEPT_LINES) all.shift()
    for (const offer of [...waiting]) offer(line)
  }
  return { all, ended: pump(stream, take), first }

  function first(match: (line: string) => boolean, timeout_ms = NEVER_MS): Promise<string> {
    const known = all.find(match)
    if (known !== undefined) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        clearTimeout(late)
        waiting.delete(offer)
        finish()
      }
      const offer = (line: string) => match(line) && settle(() => resolve(line))
      const late = setTimeout(
        () => settle(() => reject(new Error(`no such line within ${timeout_ms} ms`))),
        timeout_ms,
      )
      waiting.add(offer)
    })
  }
}

async function pump(stream: ReadableStream<Uint8Array>, take: (line: string) => void) {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) take(line)
  }
  if (rest) take(rest)
}
