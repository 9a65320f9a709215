import type { Problems } from "../http/problems"
import { isLonger } from "../lib/text"

/** One file as the request gives it, decoded. */
export interface GivenFile {
  filename: string
  content_type: string
  content_id: string | null
  bytes: Uint8Array
}

/** One file that is to be fetched. */
export interface RemoteFile {
  filename: string
  /** Null: as its server says. */
  content_type: string | null
  content_id: string | null
  url: string
  /** Of the field that holds the URL: `attachments.0.path`. */
  path: string
}

/** An attachment, as the request names it. */
export type AttachedInput = GivenFile | RemoteFile

export const isRemote = (file: AttachedInput): file is RemoteFile => "url" in file

const MOST_FILES = 50
const MAX_NAME = 255
export const MEDIA_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}(; ?[\x20-\x7e]{1,200})?$/
const CONTENT_ID = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]{1,255}$/

/** Control characters, path separators, quotes, and what turns the reading direction around. */
const UNSAFE_NAME = /[\p{Cc}\u2028\u2029/\\"\u202a-\u202e\u2066-\u2069]/u

/** Reads `attachments`: strict base64 or the URL of a file, safe names, at most 50. */
export function readAttachments(value: unknown, problems: Problems): AttachedInput[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    problems.add(
      "attachments",
      "invalid",
      "The value must be a list of objects {filename, content, content_type}.",
    )
    return []
  }
  if (value.length > MOST_FILES) {
    problems.add("attachments", "too_many", `An email may have at most ${MOST_FILES} attachments.`)
    return []
  }
  return value.flatMap((item, at) => readOne(item, `attachments.${at}`, problems))
}

function readOne(item: unknown, path: string, problems: Problems): AttachedInput[] {
  if (typeof item !== "object" || item === null) {
    problems.add(path, "invalid", "The value must be an object {filename, content, content_type}.")
    return []
  }
  const { filename, content, path: url, content_type, content_id } = item as Record<string, unknown>
  const before = problems.list.length
  checkName(filename, `${path}.filename`, problems)
  checkForm(
    content_type ?? "application/octet-stream",
    MEDIA_TYPE,
    `${path}.content_type`,
    problems,
  )
  if (content_id != null) checkForm(content_id, CONTENT_ID, `${path}.content_id`, problems)
  const known = {
    filename: filename as string,
    content_id: (content_id as string | undefined) ?? null,
  }
  const given_type = (content_type as string | undefined) ?? null
  if (url != null) {
    const where = `${path}.path`
    checkUrl(url, content, where, problems)
    if (problems.list.length > before) return []
    return [{ ...known, content_type: given_type, url: url as string, path: where }]
  }
  const bytes = decode(content, `${path}.content`, problems)
  if (!bytes || problems.list.length > before) return []
  return [{ ...known, content_type: given_type ?? "application/octet-stream", bytes }]
}

/** Whether it may be fetched, and can be, is asked later. */
function checkUrl(url: unknown, content: unknown, path: string, problems: Problems) {
  if (typeof url !== "string") problems.add(path, "invalid", "The value must be an https:// URL.")
  if (content != null) problems.add(path, "invalid", "Give content or path, not both.")
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

/** Strict: what the decoder would skip silently is a mistake of the sender. */
function decode(content: unknown, path: string, problems: Problems): Uint8Array | undefined {
  if (content === undefined) {
    problems.add(path, "required", "The field is required.")
    return undefined
  }
  if (typeof content === "string") {
    const bytes = Buffer.from(content, "base64")
    if (bytes.toString("base64") === content) return bytes
  }
  problems.add(
    path,
    "invalid",
    "The value must be strict base64 (RFC 4648, section 4), padded and without line breaks.",
  )
  return undefined
}
