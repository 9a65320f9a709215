import { createHash } from "node:crypto"
import { safeFilename } from "../lib/file-names"
import { headerFields } from "../lib/mail-text"
import {
  contentOf,
  isFile,
  type MailLeaf,
  readTree,
  TREE_PROBLEMS,
  textsOf,
} from "../lib/mail-tree"

export interface ParsedMail {
  /** Names in lower case; a field that occurs more than once is a list. */
  headers: Record<string, string | string[]>
  html: string | null
  text: string | null
  attachments: ParsedAttachment[]
  /** Why the body could not be read whole; the raw message is still there. */
  parse_error: string | null
}

interface ParsedAttachment {
  /** Its place among the files of the mail, from 0. */
  id: string
  filename: string | null
  content_type: string
  content_id: string | null
  size: number
  sha256: string
}

/** Runs in the worker. Of a message that cannot be parsed there is what was read, and the reason. */
export function parseMail(raw: Uint8Array): ParsedMail {
  const { leaves, problem } = readTree(raw)
  const bodies = leaves.filter((leaf) => !isFile(leaf))
  return {
    headers: headersOf(raw),
    html: textsOf(bodies, "text/html"),
    text: textsOf(bodies, "text/plain"),
    attachments: leaves.filter(isFile).map(describe),
    parse_error: problem && TREE_PROBLEMS[problem],
  }
}

function describe(leaf: MailLeaf, place: number): ParsedAttachment {
  const { filename, content_type, content_id } = leaf
  const content = contentOf(leaf)
  const sha256 = createHash("sha256").update(content).digest("hex")
  return { id: String(place), filename, content_type, content_id, size: content.length, sha256 }
}

export interface MailFile {
  filename: string
  content_type: string
  bytes: Uint8Array
}

/** Runs in the worker. The file with this number; undefined where the mail has no such file. */
export function readAttachment(wanted: { raw: Uint8Array; place: number }): MailFile | undefined {
  const leaf = readTree(wanted.raw).leaves.filter(isFile)[wanted.place]
  if (!leaf) return undefined
  const fallback = leaf.content_type === "message/rfc822" ? "message.eml" : "attachment"
  const filename = safeFilename(leaf.filename, fallback)
  return { filename, content_type: leaf.content_type, bytes: new Uint8Array(contentOf(leaf)) }
}

function headersOf(raw: Uint8Array): ParsedMail["headers"] {
  const headers: ParsedMail["headers"] = Object.create(null)
  for (const [name, value] of headerFields(raw)) {
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}
