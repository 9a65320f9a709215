import { hashOf, parseScanned } from "./json"

export interface PartsToParse {
  /** In their order; a `JsonScan` has seen them. */
  parts: Uint8Array[]
  /** Whether the hash will be asked for. */
  hashed: boolean
}

export interface Parsed {
  value: unknown
  hash: string | undefined
}

/** Runs in the worker, for bodies that would hold the main thread too long. */
export function parseBody({ parts, hashed }: PartsToParse): Parsed {
  const value = parseScanned(parts)
  Bun.gc(true) // frees the text: by itself the thread collects only when there are several of them
  setTimeout(() => Bun.gc(true)) // frees the value, which has been sent by then
  return { value, hash: hashed ? hashOf(value) : undefined }
}
