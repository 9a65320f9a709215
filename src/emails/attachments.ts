import { ApiError, invalid, type Problems } from "../core/errors"
import { type AddressPolicy, NetError, type NetErrorKind, request } from "../core/net"
import { OwnerTurns } from "../lib/semaphore"
import { isLonger } from "../lib/text"
import { fileInJson } from "../lib/transport-encoding"
import { assertForm } from "../webhooks/endpoint-input"

export interface AttachmentInput {
  filename: string
  content_type: string
  content_id: string | null
  bytes: Uint8Array
}

interface RemoteFile {
  filename: string
  /** Null: as its name says, or its server. */
  content_type: string | null
  content_id: string | null
  url: string
  /** Of the field that holds the URL: `attachments.0.path`. */
  path: string
}

export type AttachedInput = AttachmentInput | RemoteFile

const isRemote = (file: AttachedInput): file is RemoteFile => "url" in file

const MOST_FILES = 50
const MAX_NAME = 255
const UNKNOWN_TYPE = "application/octet-stream"
export const MEDIA_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}(; ?[\x20-\x7e]{1,200})?$/
export const CONTENT_ID = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]{1,255}$/

/** Control characters, path separators, quotes, and what turns the reading direction around. */
const UNSAFE_NAME = /[\p{Cc}\u2028\u2029/\\"\u202a-\u202e\u2066-\u2069]/u

/** Reads `attachments`: each file itself or its URL, safe names, at most 50. */
export function readAttachments(value: unknown, problems: Problems): AttachedInput[] {
  if (!Array.isArray(value)) {
    const hint = "The value must be a list of objects {filename, content, content_type}."
    return problems.add("attachments", "invalid", hint) ?? []
  }
  if (value.length > MOST_FILES) {
    const hint = `An email may have at most ${MOST_FILES} attachments.`
    return problems.add("attachments", "too_many", hint) ?? []
  }
  return value.flatMap((item, at) => readOne(item, `attachments.${at}`, problems))
}

function readOne(item: unknown, path: string, problems: Problems): AttachedInput[] {
  if (typeof item !== "object" || item === null) {
    const hint = "The value must be an object {filename, content, content_type}."
    return problems.add(path, "invalid", hint) ?? []
  }
  const { content, path: url, inline_content_id, ...named } = item as Record<string, unknown>
  const { filename, content_type = null } = named as Partial<RemoteFile>
  const before = problems.list.length
  checkName(filename, `${path}.filename`, problems)
  if (content_type !== null) checkForm(content_type, MEDIA_TYPE, `${path}.content_type`, problems)
  const content_id = withoutBrackets(named.content_id ?? inline_content_id ?? null)
  if (content_id !== null) checkForm(content_id, CONTENT_ID, `${path}.content_id`, problems)
  const file = { filename: filename ?? "", content_id }
  if (url != null) {
    const where = `${path}.path`
    if (typeof url !== "string")
      problems.add(where, "invalid", "The value must be an https:// URL.")
    if (content != null) problems.add(where, "invalid", "Give content or path, not both.")
    // Whether it may be fetched, and can be, shows later.
    const remote = { ...file, content_type, url: url as string, path: where }
    return problems.list.length > before ? [] : [remote]
  }
  const bytes = decode(content, `${path}.content`, problems)
  if (!bytes || problems.list.length > before) return []
  return [{ ...file, content_type: content_type ?? typeOf(file.filename) ?? UNKNOWN_TYPE, bytes }]
}

/** `<a@b>` is how a mail writes it, and `cid:a@b` how html does. */
const withoutBrackets = (id: unknown) =>
  (typeof id === "string" ? id.replace(/^<(.*)>$/, "$1") : id) as string | null

/** What the ending of a name says. The charset of a text is not known. */
function typeOf(filename: string): string | undefined {
  const [ending = ""] = /\.[^.]+$/.exec(filename) ?? []
  const [type] = Bun.file(`file${ending}`).type.split(";")
  return type === UNKNOWN_TYPE ? undefined : type
}

function checkName(name: unknown, path: string, problems: Problems) {
  if (name === undefined) return problems.add(path, "required", "The field is required.")
  if (typeof name !== "string" || name === "" || isLonger(name, MAX_NAME)) {
    return problems.add(path, "invalid", `The value must be a text of 1 to ${MAX_NAME} characters.`)
  }
  if (UNSAFE_NAME.test(name) || !name.isWellFormed() || name === "." || name === "..") {
    problems.add(path, "invalid", "A file name must not hold a path, quotes or control characters.")
  }
}

function checkForm(value: unknown, form: RegExp, path: string, problems: Problems) {
  if (typeof value === "string" && form.test(value)) return
  problems.add(path, "invalid", "This is not in the form of this field.")
}

/** Large ones come decoded (`http/json.ts`). */
function decode(content: unknown, path: string, problems: Problems): Uint8Array | undefined {
  if (content === undefined) return problems.add(path, "required", "The field is required.")
  const bytes = content instanceof Uint8Array ? content : fileInJson(content)
  if (bytes) return bytes
  const hint =
    "The value must be strict base64 (RFC 4648, section 4), padded and without line breaks, or a list of bytes."
  return problems.add(path, "invalid", hint)
}

const FETCH_MS = 10_000
const MAX_FILE_BYTES = 10_485_760

/** So many at once, so that a request holds few files that it may not keep. */
const AT_ONCE = 3

export interface FileRules extends AddressPolicy {
  /** PEM of the authorities to trust instead of the well-known ones. */
  ca?: string
  /** Of one file; 10 s without it. */
  timeout_ms?: number
}

/**
 * The same attachments with every file at hand: those that are named by a URL are fetched now. When
 * they are too much for a message already, the rest is left out. Throws `invalid_url` for what cannot
 * be fetched, and the signal's reason.
 */
export async function fetchFiles(
  files: AttachedInput[],
  {
    project_id,
    rules,
    signal,
  }: { project_id: string; rules: FileRules; signal: AbortSignal | undefined },
): Promise<AttachmentInput[]> {
  if (!files.some(isRemote)) return files as AttachmentInput[]
  const release = await turns.acquire(project_id)
  try {
    const found: AttachmentInput[] = []
    for (let at = 0; at < files.length && bytesOf(found) <= MAX_FILE_BYTES; at += AT_ONCE) {
      signal?.throwIfAborted()
      const some = files.slice(at, at + AT_ONCE)
      const fetched = some.map((file) => (isRemote(file) ? fetchFile(file, rules) : file))
      found.push(...(await Promise.all(fetched)))
    }
    return found
  } finally {
    release?.()
  }
}

const bytesOf = (files: AttachmentInput[]) =>
  files.reduce((sum, { bytes }) => sum + bytes.length, 0)

/** Messages of one project that wait for their files at the same time: files fill the memory. */
const MESSAGES_AT_ONCE = 2

const turns = new OwnerTurns(Number.POSITIVE_INFINITY, {}, MESSAGES_AT_ONCE)

async function fetchFile(file: RemoteFile, rules: FileRules): Promise<AttachmentInput> {
  const { url, path, filename, content_id } = file
  const { status, headers, body, truncated } = await ask(url, path, rules)
  if (status !== 200)
    throw refusal(path, `The server of this URL answered ${status} instead of 200.`)
  if (truncated) throw refusal(path, `The file has more than ${MAX_FILE_BYTES} bytes.`)
  const told = headers.get("content-type")?.trim() ?? ""
  const fallback = typeOf(filename) ?? (MEDIA_TYPE.test(told) ? told : UNKNOWN_TYPE)
  return { filename, content_id, content_type: file.content_type ?? fallback, bytes: body }
}

/** The rules of a webhook's URL apply, under the name of this field. */
async function ask(url: string, path: string, { timeout_ms = FETCH_MS, ...rules }: FileRules) {
  try {
    assertForm(url, { require_https: true })
    return await request({ url, ...rules, timeout_ms, capture_bytes: MAX_FILE_BYTES })
  } catch (error) {
    if (error instanceof ApiError) throw refusal(path, error.message)
    if (error instanceof NetError) throw refusal(path, REASONS[error.kind])
    throw error
  }
}

/** Not the words of our network: they would tell anybody what stands behind it. */
const REASONS: Record<NetErrorKind, string> = {
  invalid_url: "The URL cannot be used.",
  dns: "The host of this URL has no address.",
  blocked_address: "The URL leads to an address that is not allowed.",
  timeout: "The server of this URL did not send the file in time.",
  tls: "The host of this URL has no valid TLS certificate.",
  connection: "The host of this URL cannot be reached.",
}

const refusal = (path: string, message: string) => invalid(path, "invalid_url", message)
