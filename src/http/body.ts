import { ApiError } from "../core/errors"
import { parseJson, unreadable } from "./json"

export const DEFAULT_LIMIT_BYTES = 1_048_576

const EMPTY = new Uint8Array()

/** Before anything else is known of the request, its own word about its size must fit. */
export function refuseDeclared(request: Request, limit_bytes: number) {
  const declared = Number(request.headers.get("content-length") ?? 0)
  if (declared > limit_bytes) throw tooLarge(limit_bytes, declared)
}

/** The JSON of the body; an absent one is an empty object. A chunked body is cut at the limit. */
export async function readJson(
  request: Request,
  limit_bytes: number,
  { any_type }: { any_type?: true } = {},
): Promise<unknown> {
  const bytes = await readBytes(request, limit_bytes)
  if (bytes.length === 0) return {}
  const type = request.headers.get("content-type")
  if (!any_type && (!type || !/^application\/json\s*(;|$)/i.test(type))) {
    throw unreadable("content_type", "A body needs Content-Type: application/json.")
  }
  return parseJson(bytes)
}

/** The fields of a form; of a name that comes twice the last one counts. */
export async function readForm(request: Request, limit_bytes: number): Promise<unknown> {
  const bytes = await readBytes(request, limit_bytes)
  if (bytes.length === 0) return {}
  const type = request.headers.get("content-type")
  if (!type || !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
    throw unreadable("content_type", "This page takes its own form only.")
  }
  return Object.fromEntries(new URLSearchParams(Buffer.from(bytes).toString("utf8")))
}

async function readBytes(request: Request, limit_bytes: number): Promise<Uint8Array> {
  // Who touches `body` makes a stream of it, which costs more than all of this request's checks.
  if (request.headers.has("content-length")) return new Uint8Array(await request.arrayBuffer())
  if (!request.body) return EMPTY

  const parts: Uint8Array[] = []
  let received = 0
  for await (const part of request.body) {
    received += part.length
    if (received > limit_bytes) break
    parts.push(part)
  }
  if (received > limit_bytes) throw tooLarge(limit_bytes, received)
  return Buffer.concat(parts)
}

const tooLarge = (limit_bytes: number, received_bytes: number) =>
  new ApiError(
    "payload_too_large",
    `The body has ${received_bytes} bytes; at most ${limit_bytes} are allowed here.`,
    { limit_bytes, received_bytes },
  )
