import { createHash } from "node:crypto"
import { simpleParser } from "mailparser"
import { headerFields } from "../lib/mail-text"

export interface ParsedMail {
  /** Names in lower case; a field that occurs more than once is a list. */
  headers: Record<string, string | string[]>
  html: string | null
  text: string | null
  attachments: ParsedAttachment[]
  /** Why the body could not be read; the raw message is still there. */
  parse_error: string | null
}

interface ParsedAttachment {
  filename: string | null
  content_type: string
  content_id: string | null
  size: number
  sha256: string
}

/** Runs in the worker. A message that cannot be parsed comes back with its headers and the reason. */
export async function parseMail(raw: Uint8Array): Promise<ParsedMail> {
  const headers = headersOf(raw)
  try {
    const mail = await simpleParser(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), {
      keepDeliveryStatus: true,
      skipHtmlToText: true,
      skipTextToHtml: true,
      skipImageLinks: true,
      skipTextLinks: true,
    })
    const attachments = mail.attachments.map((part) => ({
      filename: part.filename ?? null,
      content_type: part.contentType,
      content_id: part.contentId?.replace(/^<|>$/g, "") ?? null,
      size: part.size,
      sha256: createHash("sha256").update(part.content).digest("hex"),
    }))
    return {
      headers,
      html: mail.html || null,
      text: mail.text ?? null,
      attachments,
      parse_error: null,
    }
  } catch (error) {
    const parse_error = error instanceof Error ? error.message : String(error)
    return { headers, html: null, text: null, attachments: [], parse_error }
  }
}

function headersOf(raw: Uint8Array): ParsedMail["headers"] {
  const headers: ParsedMail["headers"] = Object.create(null)
  for (const [name, value] of headerFields(raw)) {
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}
