import { ApiError } from "../core/errors"
import { fileInJson } from "../lib/transport-encoding"

/** The value of a text, in parts, that a `JsonScan` let pass. Throws `invalid_json`. */
export function parseScanned(parts: readonly Uint8Array[]): unknown {
  const text = decode(parts)
  try {
    return parseNumbersApart(text)
  } catch {
    throw unreadable("syntax", "The body is not valid JSON. Check quotes, commas and brackets.")
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

function decode(parts: readonly Uint8Array[]): string {
  const [first] = parts
  try {
    return first && parts.length === 1 ? utf8.decode(first) : joined(parts)
  } catch {
    throw unreadable("encoding", "The body is not valid UTF-8. Encode it as UTF-8.")
  }
}

/** The parts go as they are read, so that not everything is there twice. */
function joined(parts: readonly Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  const texts = parts.map((part) => {
    const text = decoder.decode(part, { stream: true })
    release(part)
    return text
  })
  return texts.join("") + decoder.decode()
}

/** Gives its memory back at once; the next collection of garbage may be some megabytes away. */
export const release = (part: Uint8Array): void => void bufferOf(part)?.transfer(0)

/** The memory of the part, where nothing else is in it. */
export const bufferOf = ({ buffer, byteLength }: Uint8Array): ArrayBuffer | undefined =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? buffer : undefined

/** The same value always as the same text: keys sorted, no white space (for hashes). */
export const canonicalJson = (value: unknown): string => JSON.stringify(sorted(value))

/** SHA-256 of the canonical form. */
export const hashOf = (value: unknown): string => Bun.SHA256.hash(canonicalJson(value), "hex")

/** A copy to be written at once, which is cheaper than joining the text piece by piece. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const fields = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of inOrder(Object.keys(fields))) copy[key] = sorted(fields[key])
  return copy
}

const MOST_INSERTED = 16

/** Sorts in place, as `sort` does. For the few keys of most objects its call costs more than the sorting. */
function inOrder(keys: string[]): string[] {
  if (keys.length > MOST_INSERTED) return keys.sort()
  for (let next = 1; next < keys.length; next++) {
    const key = keys[next] as string
    let at = next
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string
    keys[at] = key
  }
  return keys
}

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
  const hash = hashed ? hashOf(value) : undefined
  decodeFiles(value)
  return { value, hash }
}

/** Of base64. What is shorter, its reader decodes. */
const LONG_CHARACTERS = 65_536

/** Attachments become bytes here. What is no file stays, for its reader to refuse it. */
function decodeFiles(value: unknown): void {
  if (typeof value !== "object" || value === null) return
  const { attachments, messages } = value as { attachments?: unknown; messages?: unknown }
  const mails = Array.isArray(value) ? value : messages
  if (Array.isArray(mails)) for (const mail of mails) decodeFiles(mail)
  if (!Array.isArray(attachments)) return
  for (const file of attachments as ({ content?: unknown } | null)[]) {
    const content = file?.content
    if (!file || (typeof content === "string" && content.length <= LONG_CHARACTERS)) continue
    file.content = fileInJson(content) ?? content
  }
}

const MAX_DEPTH = 64
export const MAX_KEYS = 10_000
export const MAX_VALUES = 100_000

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c

export const unreadable = (reason: string, message: string) =>
  new ApiError("invalid_json", message, { reason })

export interface ScanLimits {
  /** Of all objects together; 10,000 without it. */
  most_keys?: number | undefined
  /** Numbers of lists are the bytes of files, as many as the size of the body allows. */
  lists_are_files?: boolean | undefined
}

/**
 * Looks at the bytes of a JSON text, in parts as they arrive, for what `JSON.parse` swallows: depth
 * 64, 10,000 keys, 100,000 values, no key twice in an object, no `__proto__`. It allocates next to
 * nothing, so a body of millions of values is refused before they are made. Whether the text is
 * valid is left to `JSON.parse`.
 */
export class JsonScan {
  /** The keys of each open object; null for a list. */
  private readonly open: (string[] | null)[] = []
  private readonly most_keys: number
  private readonly lists_are_files: boolean
  private keys = 0
  private values = 0
  /** Of files, which are not counted among the values. */
  private numbers = 0
  private awaits_key = false
  private in_scalar = false
  private in_string = false
  /** The part ended on a backslash that belongs to what comes next. */
  private escapes = false
  /** The key so far, where the string is one. */
  private key: string | undefined

  constructor({ most_keys = MAX_KEYS, lists_are_files = false }: ScanLimits = {}) {
    this.most_keys = most_keys
    this.lists_are_files = lists_are_files
  }

  /** It has so many values that to parse it takes as long as for a far larger text. */
  get is_heavy(): boolean {
    return this.numbers > MAX_VALUES
  }

  /** The next part. Throws `invalid_json` at the first limit that is passed. */
  feed(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    const { buffer, byteOffset, byteLength } = bytes
    // A character for each byte: what JSON is made of is ASCII, and no other byte looks like it.
    const text = Buffer.from(buffer, byteOffset, byteLength).toString("latin1")
    let at = this.in_string ? this.resumeString(text) + 1 : 0
    for (; at < text.length; at++) {
      const char = text.charCodeAt(at)
      if (char === QUOTE) at = this.enterString(text, at + 1)
      else if (char === COMMA) {
        this.in_scalar = false
        this.awaits_key = !!this.open.at(-1)
      } else if (char === 0x7b || char === 0x5b) this.enter(char === 0x7b)
      else if (char === 0x7d || char === 0x5d) this.leave()
      else if (char === COLON || char <= 0x20) this.in_scalar = false
      else if (!this.in_scalar) {
        this.in_scalar = true
        if (this.lists_are_files && this.open.at(-1) === null) this.numbers++
        else this.count()
      }
    }
  }

  private count() {
    if (++this.values > MAX_VALUES) {
      throw unreadable(
        "too_many_values",
        "The body has more than 100,000 values. Send it in smaller parts.",
      )
    }
  }

  private enter(is_object: boolean) {
    this.count()
    this.in_scalar = false
    this.awaits_key = is_object
    this.open.push(is_object ? [] : null)
    if (this.open.length > MAX_DEPTH)
      throw unreadable("depth", "The body has more than 64 nested levels. Send a flatter one.")
  }

  private leave() {
    this.in_scalar = false
    this.awaits_key = false
    this.open.pop()
  }

  private enterString(text: string, from: number): number {
    this.in_scalar = false
    const end = endOfString(text, from)
    if (!this.awaits_key) this.count()
    else if (end < text.length) this.endKey(text.slice(from, end))
    else this.key = text.slice(from)
    if (end === text.length) this.breakString(text, from)
    return end
  }

  private breakString(text: string, from: number) {
    this.in_string = true
    this.escapes = isEscaped(text, text.length, from)
  }

  /** Where the string of earlier parts ends, or this part. */
  private resumeString(text: string): number {
    const from = this.escapes ? 1 : 0
    const end = endOfString(text, from)
    if (this.key !== undefined) this.key += text.slice(0, end)
    if (end === text.length) this.breakString(text, from)
    else {
      this.in_string = false
      if (this.key !== undefined) this.endKey(this.key)
      this.key = undefined
    }
    return end
  }

  private endKey(literal: string) {
    this.awaits_key = false
    if (++this.keys > this.most_keys) {
      const most = this.most_keys.toLocaleString("en")
      throw unreadable("keys", `The body has more than ${most} keys. Send it in smaller parts.`)
    }
    remember(this.open.at(-1), literal)
  }
}

function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from)
  while (end !== -1 && isEscaped(text, end, from)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

/** An odd number of backslashes before this place. */
function isEscaped(text: string, place: number, from: number): boolean {
  let at = place - 1
  while (at >= from && text.charCodeAt(at) === BACKSLASH) at--
  return (place - at) % 2 === 0
}

const SMALL = 32

function remember(seen: string[] | null | undefined, literal: string) {
  const key = literal.includes("\\") ? unescaped(literal) : literal
  if (key === "__proto__")
    throw unreadable("proto", 'The key "__proto__" is not allowed. Rename it.')
  if (!seen) return
  const set = seen.length < SMALL ? undefined : large(seen)
  if (set ? set.has(key) : seen.includes(key)) {
    const shown = Buffer.from(key.slice(0, 64), "latin1").toString("utf8")
    throw unreadable(
      "duplicate_key",
      `The key ${JSON.stringify(shown)} is twice in one object. Send it once.`,
    )
  }
  seen.push(key)
  set?.add(key)
}

/** As it would stand there without escapes, a character for each byte again. */
function unescaped(literal: string): string {
  try {
    const key: string = JSON.parse(`"${Buffer.from(literal, "latin1").toString("utf8")}"`)
    // Half a character has no bytes of its own; written as an escape it stays what it is.
    return key.isWellFormed() ? Buffer.from(key, "utf8").toString("latin1") : JSON.stringify(key)
  } catch {
    return literal // no JSON: that is found soon
  }
}

/** An object with many keys gets a set, so that looking for duplicates stays linear. */
const sets = new WeakMap<string[], Set<string>>()

function large(seen: string[]): Set<string> {
  const known = sets.get(seen)
  if (known) return known
  const set = new Set(seen)
  sets.set(seen, set)
  return set
}

/** The largest integer up to which a double holds every one (RFC 8259, section 6). */
const LARGEST = 2 ** 53

/** Whether no number in a JSON value is beyond ±2^53 as an integer, or has become infinite. */
export function isExactlyCarried(value: unknown): boolean {
  if (typeof value === "number") {
    return Number.isFinite(value) && (!Number.isInteger(value) || Math.abs(value) <= LARGEST)
  }
  if (typeof value !== "object" || value === null) return true
  return Object.values(value).every(isExactlyCarried)
}

/** Of all integers the only one that a parser makes 2^53, which itself is allowed. */
const ROUNDED = String(BigInt(LARGEST) + 1n)

/** As `JSON.parse`, but 2^53 + 1 becomes the double above it, so that it stays out of bounds. */
function parseNumbersApart(text: string): unknown {
  if (!text.includes(ROUNDED)) return JSON.parse(text)
  return JSON.parse(text, ((_name: string, value: unknown, { source }: { source?: string }) => {
    if (source !== ROUNDED && source !== `-${ROUNDED}`) return value
    return Math.sign(value as number) * (LARGEST + 2)
  }) as (name: string, value: unknown) => unknown)
}
