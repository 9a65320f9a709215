import type { Workers } from "../core/workers"
import { Turns } from "../lib/permits"
import { type Arriving, declaredBytes, readParts, tooLarge } from "./body-parts"
import type { Parsed, PartsToParse } from "./body-task"
import { bufferOf, hashOf, parseScanned } from "./json"
import { JsonScan, unreadable } from "./json-scan"

export const DEFAULT_LIMIT_BYTES = 1_048_576

/** To parse more than this can hold the main thread for over 20 ms. */
const MOST_BYTES_HERE = 2_097_152
const PARSE = { deadline_ms: 25_000 }

/** What a request says. */
export interface Body {
  value: unknown
  /** SHA-256 of its canonical form: two requests with the same hash say the same. */
  hash: () => string
}

export type Reading = Omit<Arriving, "onPart"> & {
  workers: Pick<Workers, "run">
  /** Its JSON may come under whatever content type the other side gives it. */
  any_type?: true | undefined
}

/** Before anything else is known of the request, its own word about its size must fit. */
export function refuseDeclared(request: Request, limit_bytes: number) {
  const declared = declaredBytes(request) ?? 0
  if (declared > limit_bytes) throw tooLarge(limit_bytes, declared)
}

export const bodyOf = (value: unknown): Body => ({ value, hash: () => hashOf(value) })

/**
 * The JSON of the body; an absent one is an empty object. It is judged while it arrives, so what
 * nobody will read is refused early. A chunked body is cut at the limit.
 */
export async function readJson(request: Request, reading: Reading): Promise<Body> {
  const scan = new JsonScan()
  const onPart = (bytes: Uint8Array) => {
    if (!reading.any_type)
      demandType(request, JSON_TYPE, "The body needs the header Content-Type: application/json.")
    scan.feed(bytes)
  }
  const parts = await readParts(request, { ...reading, onPart })
  const bytes = lengthOf(parts)
  if (bytes === 0) return bodyOf({})
  if (bytes <= MOST_BYTES_HERE) return bodyOf(parseScanned(parts))
  return parseElsewhere(request, parts, reading)
}

/** The fields of a form; of a name that comes twice the last one counts. */
export async function readForm(request: Request, reading: Reading): Promise<Body> {
  const onPart = () => demandType(request, FORM_TYPE, "This page accepts only its own form.")
  const parts = await readParts(request, { ...reading, onPart })
  const text = Buffer.concat(parts).toString("utf8")
  return bodyOf(Object.fromEntries(new URLSearchParams(text)))
}

const JSON_TYPE = /^application\/json\s*(;|$)/i
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(;|$)/i

function demandType({ headers }: Request, type: RegExp, message: string) {
  if (!type.test(headers.get("content-type") ?? "")) throw unreadable("content_type", message)
}

const lengthOf = (parts: Uint8Array[]) => parts.reduce((sum, { length }) => sum + length, 0)

/** One at a time in this process: mail is composed in the same threads. */
const turns = new Turns(1)

/** In a thread. The bytes are given away: what is copied is only the value that comes back. */
async function parseElsewhere(
  request: Request,
  parts: Uint8Array[],
  { workers, signal }: Reading,
): Promise<Body> {
  const end = await turns.take()
  try {
    signal.throwIfAborted()
    const input: PartsToParse = { parts, hashed: request.headers.has("idempotency-key") }
    const transfer = parts.map(bufferOf).filter((buffer) => buffer !== undefined)
    const { value, hash } = await workers.run<Parsed>("parse-body", input, { ...PARSE, transfer })
    return { value, hash: () => hash ?? hashOf(value) }
  } finally {
    end()
  }
}
