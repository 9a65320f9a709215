import { readFile } from "node:fs/promises"
import type { Blobs } from "../core/blobs"

/** Content whose texts are a file: a row of megabytes would hold the event loop at each step of its way. */
export interface FiledContent {
  /** The SHA-256 that names the file. */
  file: string
  /** Its bytes, which count as stored. */
  size: number
  headers: Record<string, string>
}

interface Texts {
  html: string | null
  text: string | null
}

/** Characters of html and text. What is shorter costs less in a row. */
const MOST_IN_ROW = 512 * 1024

export const isFiled = (content: object): content is FiledContent => "file" in content

/** The content as it is stored. Its file is on disk when this resolves. */
export function stored<Content extends Texts & Pick<FiledContent, "headers">>(
  content: Content,
  blobs: Blobs,
): Content | Promise<FiledContent> {
  const { html, text } = content
  const is_short = (html?.length ?? 0) + (text?.length ?? 0) <= MOST_IN_ROW
  return is_short ? content : file(content, blobs)
}

async function file(
  { html, text, headers }: Texts & Pick<FiledContent, "headers">,
  blobs: Blobs,
): Promise<FiledContent> {
  const parts = [html, text].map((one) => (one === null ? null : Buffer.from(one)))
  const lengths = Buffer.from(`${JSON.stringify(parts.map((one) => one?.length ?? null))}\n`)
  const bytes = [lengths, ...parts.filter((one) => one !== null)]
  const { sha256 } = await blobs.put(...bytes)
  const size = bytes.reduce((sum, { length }) => sum + length, 0)
  return { file: sha256, size, headers }
}

/** The texts of such a file. Rejects with ENOENT where it is gone. */
export const textsAt = async (path: string): Promise<Texts> => textsOf(await readFile(path))

export function textsOf(bytes: Uint8Array): Texts {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = file.indexOf("\n") + 1
  const lengths = JSON.parse(file.toString("utf8", 0, at)) as [number | null, number | null]
  const [html = null, text = null] = lengths.map((length) => {
    if (length === null) return null
    at += length
    return file.toString("utf8", at - length, at)
  })
  return { html, text }
}

/** What of an email is large and cold. */
export interface EmailContent {
  html: string | null
  /** As it was given. What is made from html is made where it is wanted: composing and reading. */
  text: string | null
  headers: Record<string, string>
}

/** The same of an email that was submitted as bytes. */
export interface SubmittedContent {
  /** A character is a byte (ISO 8859-1). Null: the blob that the envelope names holds the bytes. */
  submitted: string | null
}

export const isSubmitted = (content: unknown): content is SubmittedContent =>
  typeof content === "object" && content !== null && "submitted" in content
