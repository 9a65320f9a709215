import type { FileColumns, FileRow } from "../lib/file-columns"
import type { ImportLine } from "../lib/file-import"
import { given } from "../lib/input"
import { plainWord, STANDING_FIELDS, standingOf } from "../lib/standing"

/** The columns of a list of suppressed addresses, as services and spreadsheets call them. */
export const COLUMNS: FileColumns = {
  keys: ["address", "email", "recipient"],
  fields: {
    ...{ address: [], email: ["emailaddress", "mail"], recipient: [] },
    ...{ reason: ["suppressionreason"], note: [], expires_at: [], scope: [], scope_type: [] },
    ...{ created: [], created_at: ["lastupdatetime"], origin: [], ip: [], tags: [] },
    ...{ code: [], error: ["errormessage"] },
    ...STANDING_FIELDS,
  },
}

export interface SuppressionLine extends ImportLine {
  /** The file says that this person gets mail. */
  left_out: boolean
}

/** A suppression as the server takes it. What a file does not say comes from `reason` and `note`. */
export function suppressionLine(row: FileRow, reason?: string, note?: string): SuppressionLine {
  const { line, length, values } = row
  const said = saidIn(row)
  const contacts = COLUMNS.keys.map(said.text)
  const name = contacts.find((text) => /@|^\+\d/.test(text)) ?? contacts.find(Boolean) ?? ""
  const fields = given({
    reason: reasonOf(said) ?? reason ?? usualReason(said),
    note: noteOf(said, note),
    expires_at: values.get("expires_at") ?? undefined,
  })
  const left_out = !said.has("reason") && standingOf(values) === "active"
  return { line, length, name, fields, refused: row.refused ?? refusalOf(said), left_out }
}

type Said = ReturnType<typeof saidIn>

/** The cells of a row as texts. */
const saidIn = ({ columns, values }: FileRow) => ({
  values,
  has: (field: string) => columns.has(field) || values.has(field),
  text(field: string): string {
    const value = values.get(field) ?? ""
    return typeof value === "object" ? JSON.stringify(value) : String(value)
  },
})

function refusalOf(said: Said): string | undefined {
  const scope = said.values.get("scope") as { type?: string } | undefined
  const type = scope?.type ?? (said.text("scope_type") || "project")
  if (type !== "project") return `A suppression of one ${type} cannot be imported.`
  const tags = isMailgun(said) ? said.text("tags") : ""
  if (tags === "" || tags.includes("*")) return undefined
  return `The recipient unsubscribed from the tag ${tags.slice(0, 80)} only. A suppression would hold for all mail.`
}

/** Mailgun calls the address so. Tags beside it are what the recipient unsubscribed from. */
const isMailgun = (said: Said): boolean => said.has("address") && !said.has("email")

/** The reasons of the services. */
const REASONS: readonly [RegExp, string][] = [
  [/^((hard)?bounced?|cleaned|invalid(email)?|undeliverable)$/, "bounce"],
  [/^(complaint|complained|spam(complaint|report)?|abuse)$/, "complaint"],
  [/^(unsubscribed?|opt(ed)?out|disabled)$/, "unsubscribe"],
  [/^(manual(suppression)?|block(list)?ed)$/, "manual"],
]

const reasonIn = (text: string): string | undefined =>
  REASONS.find(([words]) => words.test(plainWord(text)))?.[1]

/** What the cells of a row say; none where they say nothing that is known. */
function reasonOf(said: Said): string | undefined {
  const word = reasonIn(said.text("reason"))
  if (word === "manual" && plainWord(said.text("origin")) === "recipient") return "unsubscribe"
  const state = word ?? reasonIn(said.text("status")) ?? reasonIn(said.text("unsubscribe_reason"))
  if (state) return state
  if (said.text("cleaned_at") !== "" || isRefusal(said)) return "bounce"
  return standingOf(said.values) === "unsubscribed" ? "unsubscribe" : undefined
}

/** The words of a mail server: a code of RFC 3463 or of SMTP, or what a service says of a bad address. */
const isRefusal = (said: Said): boolean =>
  /^[45]\.\d/.test(said.text("status")) ||
  `${said.text("code")}${said.text("error")}` !== "" ||
  /^[45]\d\d\b|\b[45]\.\d\.\d|\b(domain|mailbox|address|recipient|user)\b/i.test(
    said.text("reason"),
  )

/** What the columns of a file say where its cells say nothing: SendGrid and Mailgun have a file for each reason. */
function usualReason(said: Said): string | undefined {
  if (isMailgun(said) && said.has("tags")) return "unsubscribe"
  if (said.has("ip") || (isMailgun(said) && said.has("created_at"))) return "complaint"
  return said.has("email") && said.has("created") ? "unsubscribe" : undefined
}

const LONGEST_NOTE = 500

/** The note of the file, or what another service says of the suppression, with its day. */
function noteOf(said: Said, note = ""): string | undefined {
  if (["note", "scope", "scope_type"].some(said.has)) return said.text("note") || note || undefined
  const reason = reasonIn(said.text("reason")) ? "" : said.text("reason")
  const words = [said.text("code"), said.text("error"), reason, said.text("unsubscribe_reason")]
  const all = [note, dayOf(said), words.filter(Boolean).join(" ")].filter(Boolean).join(": ")
  const line = all.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
  return line.slice(0, LONGEST_NOTE).toWellFormed() || undefined
}

/** A day from a time of ISO 8601 or RFC 5322, or from seconds since 1970. */
function dayOf(said: Said): string {
  const names = ["created", "created_at", "unsubscribed_at", "cleaned_at"]
  const text = names.map(said.text).find(Boolean) ?? ""
  const time = new Date(/^\d{9,10}(\.\d+)?$/.test(text) ? Number(text) * 1000 : text)
  if (/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(time.getTime())) return text.slice(0, 10)
  return time.toISOString().slice(0, 10)
}
