import { ApiError } from "../core/errors"
import { nextTurn } from "../core/time"
import { workTurn } from "../core/work-turns"
import type { Workers } from "../core/workers"
import { OwnerTurns } from "../lib/semaphore"
import type { BodyReservation } from "./body-memory"
import {
  bufferOf,
  hashOf,
  JsonScan,
  type Parsed,
  type PartsToParse,
  parseScanned,
  release,
  type ScanLimits,
  unreadable,
} from "./json"

export const DEFAULT_LIMIT_BYTES = 1_048_576

/** To parse more than this can hold the main thread for over 20 ms. */
const MOST_BYTES_HERE = 2_097_152
const PARSE = { deadline_ms: 25_000 }

/** What a request says. */
export interface RequestBody {
  value: unknown
  /** SHA-256 of its canonical form: two requests with the same hash say the same. */
  hash: () => string
}

type BodyReading = Omit<Arriving, "onPart"> &
  ScanLimits & {
    workers: Pick<Workers, "run">
  }

/** Before anything else is known of the request, its own word about its size must fit. */
export function refuseDeclared(request: Request, limit_bytes: number) {
  const declared = declaredBytes(request) ?? 0
  if (declared > limit_bytes) throw tooLarge(limit_bytes, declared)
}

export const bodyOf = (value: unknown): RequestBody => ({ value, hash: () => hashOf(value) })

/**
 * The JSON of the body; an absent body is an empty object. It is checked while it arrives, so a body
 * that breaks a limit is refused early. A chunked body is cut at the limit.
 */
export async function readJson(request: Request, reading: BodyReading): Promise<RequestBody> {
  const scan = new JsonScan(reading)
  const onPart = (bytes: Uint8Array) => {
    requireType(request, JSON_TYPE, "The body needs the header Content-Type: application/json.")
    scan.feed(bytes)
  }
  const parts = await readParts(request, { ...reading, onPart })
  const bytes = parts.reduce((sum, { length }) => sum + length, 0)
  if (bytes === 0) return bodyOf({})
  if (bytes > MOST_BYTES_HERE || scan.is_heavy) return parseElsewhere(request, parts, reading)
  if (bytes > AT_ONCE_BYTES) await workTurn(reading.reservation.owner)
  return bodyOf(parseScanned(parts))
}

/** The body as it came: signatures cover its bytes. */
export async function readBytes(request: Request, reading: BodyReading): Promise<RequestBody> {
  const parts = await readParts(request, { ...reading, onPart: () => {} })
  return bodyOf(Buffer.concat(parts))
}

/** The fields of a form, without files; of a name that comes twice the last one counts. */
export async function readForm(request: Request, reading: BodyReading): Promise<RequestBody> {
  const onPart = () => requireType(request, FORM_TYPE, "This page accepts only its own form.")
  const parts = await readParts(request, { ...reading, onPart })
  const bytes = Buffer.concat(parts)
  const type = request.headers.get("content-type") ?? ""
  const fields = MULTIPART.test(type)
    ? await multipartFields(bytes, type)
    : [...new URLSearchParams(bytes.toString("utf8"))]
  return bodyOf(Object.fromEntries(fields))
}

/** RFC 7578, as mail providers post it, too (RFC 8058, 3.2). */
async function multipartFields(bytes: Buffer, type: string): Promise<[string, string][]> {
  try {
    const form = await new Response(bytes, { headers: { "content-type": type } }).formData()
    return [...form].flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []))
  } catch {
    throw unreadable("invalid_form", "The form cannot be read. Send it again.")
  }
}

/** Requests whose bodies are on their way. */
const arriving = new Set<Request>()

/** Whether everything of the request is here. Before that its connection waits for the client. */
export const isWhole = (request: Request): boolean => !arriving.has(request)

const JSON_TYPE = /^application\/json\s*(;|$)/i
/** Mail programs that post a form may leave its type out. */
const FORM_TYPE = /^(?:application\/x-www-form-urlencoded|multipart\/form-data)?\s*(;|$)/i
const MULTIPART = /^multipart\//i

/** Whether the body says that it is the form of a page. */
export const isForm = ({ headers }: Request): boolean =>
  /^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers.get("content-type") ?? "")

function requireType({ headers }: Request, type: RegExp, message: string) {
  if (!type.test(headers.get("content-type") ?? "")) throw unreadable("content_type", message)
}

/** One at a time in this process, since mail is composed in the same threads. */
const turns = new OwnerTurns(1)

/** In a thread. The bytes are given away: what is copied is only the value that comes back. */
async function parseElsewhere(
  request: Request,
  parts: Uint8Array[],
  { workers, signal, reservation }: BodyReading,
): Promise<RequestBody> {
  const end = await turns.acquire(reservation.owner)
  try {
    signal.throwIfAborted()
    const input: PartsToParse = { parts, hashed: request.headers.has("idempotency-key") }
    const transfer = parts.map(bufferOf).filter((buffer) => buffer !== undefined)
    const { value, hash } = await workers.run<Parsed>("parse-body", input, { ...PARSE, transfer })
    await workTurn(reservation.owner)
    return { value, hash: () => hash ?? hashOf(value) }
  } finally {
    end?.()
  }
}

/** So much comes in one piece; a stream for it would cost more than all of a request's checks. */
const AT_ONCE_BYTES = 16_384
const PART_BYTES = 65_536
const CRUMB_BYTES = PART_BYTES / 4

/** A body that arrives faster than this gives way after each such part. */
const TURN_BYTES = 524_288

interface Arriving {
  reservation: BodyReservation
  /** Aborted when the request has been answered: its body is not needed any more. */
  signal: AbortSignal
  limit_bytes: number
  /** Sees each part as it comes, and throws where it ends the request. */
  onPart: (bytes: Uint8Array) => void
}

/** The body, in parts, each counted when it comes. Reading ends with the first error. */
export async function readParts(request: Request, reading: Arriving): Promise<Uint8Array[]> {
  arriving.add(request)
  try {
    const declared = declaredBytes(request)
    if (declared === undefined || declared > AT_ONCE_BYTES) {
      return request.body ? await follow(request.body, declared ?? 0, reading) : []
    }
    return declared === 0 ? [] : await readAtOnce(request, reading)
  } catch (error) {
    if ((error as Error).name === "AbortError") throw broken()
    throw error
  } finally {
    arriving.delete(request)
  }
}

function declaredBytes({ headers }: Request): number | undefined {
  const length = headers.get("content-length")
  return length === null ? undefined : Number(length)
}

async function readAtOnce(
  request: Request,
  { reservation, onPart }: Arriving,
): Promise<Uint8Array[]> {
  const bytes = new Uint8Array(await request.arrayBuffer())
  reservation.take(bytes.length)
  onPart(bytes)
  return [bytes]
}

async function follow(
  body: ReadableStream<Uint8Array>,
  declared: number,
  { reservation, signal, limit_bytes, onPart }: Arriving,
): Promise<Uint8Array[]> {
  const reader = body.getReader()
  const cancel = () => void reader.cancel().catch(() => {}) // the runtime throws away what comes
  reservation.follow(declared, cancel)
  signal.addEventListener("abort", cancel, { once: true })
  const parts = new Parts(onPart)
  let received = 0
  let looked = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      received += value.length
      if (received > limit_bytes) throw tooLarge(limit_bytes, received)
      reservation.take(value.length)
      parts.add(value)
      // A million chunks of one byte come in this turn: the others gather to one part meanwhile.
      if (value.length < CRUMB_BYTES || received - looked > TURN_BYTES) {
        looked = received
        await nextTurn()
      }
    }
    if (signal.aborted) throw broken()
    reservation.arrived()
    return parts.end()
  } catch (error) {
    cancel()
    for (const part of parts.list) release(part)
    throw error
  } finally {
    signal.removeEventListener("abort", cancel)
  }
}

const tooLarge = (limit_bytes: number, received_bytes: number) =>
  new ApiError(
    "payload_too_large",
    `The body has ${received_bytes} bytes. This route allows at most ${limit_bytes}.`,
    { limit_bytes, received_bytes },
  )

const broken = () =>
  unreadable("incomplete", "The body ended before it was complete. Send the request again.")

/** Joins what comes in crumbs: an array for each would take a hundred times their memory. */
class Parts {
  readonly list: Uint8Array[] = []
  readonly #onPart: Arriving["onPart"]
  #crumbs: Uint8Array | undefined
  #filled = 0

  constructor(onPart: Arriving["onPart"]) {
    this.#onPart = onPart
  }

  add(part: Uint8Array): void {
    if (this.#filled + part.length > PART_BYTES) this.#flush()
    if (part.length >= CRUMB_BYTES) {
      this.#flush()
      this.#keep(part)
      return
    }
    this.#crumbs ??= new Uint8Array(PART_BYTES)
    this.#crumbs.set(part, this.#filled)
    this.#filled += part.length
  }

  end(): Uint8Array[] {
    this.#flush()
    return this.list
  }

  #flush(): void {
    if (!this.#crumbs || this.#filled === 0) return
    const joined = this.#crumbs.slice(0, this.#filled)
    this.#filled = 0
    this.#keep(joined)
  }

  #keep(part: Uint8Array): void {
    this.#onPart(part)
    this.list.push(part)
  }
}
