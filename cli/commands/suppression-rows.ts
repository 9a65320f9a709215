import type { FileColumns, FileRow } from "../lib/file-columns"
import type { ImportLine } from "../lib/file-import"
import { given } from "../lib/input"
import { STANDING_FIELDS, standingOf } from "../lib/standing"

/** The columns of a list of suppressed addresses, as services and spreadsheets call them. */
export const COLUMNS: FileColumns = {
  keys: ["address", "email", "recipient"],
  fields: {
    address: [],
    email: ["emailaddress", "mail"],
    recipient: [],
    reason: ["suppressionreason"],
    ...{ note: [], expires_at: [], scope: [], scope_type: [], origin: [] },
    created: [],
    created_at: ["lastupdatetime"],
    ...{ code: [], error: ["errormessage"], tags: [], ip: [] },
    ...STANDING_FIELDS,
  },
  together: true,
  headless: "address",
}

export interface SuppressionLine extends ImportLine {
  /** The file says that this person gets mail. */
  left_out: boolean
}

/** A suppression as the server takes it. What a file does not say comes from `reason` and `note`. */
export function suppressionLine(
  row: FileRow,
  { reason, note }: { reason?: string | undefined; note?: string | undefined },
): SuppressionLine {
  const { line, length, values } = row
  const said = new Said(row)
  const contacts = ["address", "email", "recipient"].map((field) => said.text(field))
  const name = contacts.find((text) => /@|^\+\d/.test(text)) ?? contacts.find(Boolean) ?? ""
  const fields = given({
    reason: reasonOf(said) ?? reason ?? usualReason(said),
    note: noteOf(said, note),
    expires_at: values.get("expires_at") ?? undefined,
  })
  const left_out = !said.has("reason") && standingOf(values) === "active"
  return { line, length, name, fields, refused: row.refused ?? refusalOf(said), left_out }
}

/** The cells of a row as texts. */
class Said {
  readonly row: FileRow
  constructor(row: FileRow) {
    this.row = row
  }
  has = (field: string): boolean => this.row.columns.has(field) || this.row.values.has(field)
  text(field: string): string {
    const value = this.row.values.get(field) ?? ""
    return typeof value === "object" ? JSON.stringify(value) : String(value)
  }
}

function refusalOf(said: Said): string | undefined {
  const { type = said.text("scope_type") || "project" } = (said.row.values.get("scope") ?? {}) as {
    type?: string
  }
  if (type !== "project") return `A suppression of one ${type} cannot be imported.`
  const tags = isMailgun(said) ? said.text("tags") : ""
  if (tags === "" || tags.includes("*")) return undefined
  return `The recipient unsubscribed from the tag ${tags.slice(0, 80)} only. A suppression would hold for all mail.`
}

/** Only Mailgun calls the address so beside tags, which are what the recipient unsubscribed from. */
const isMailgun = (said: Said): boolean => said.has("tags") && isOnlyAddress(said)

const isOnlyAddress = (said: Said): boolean => said.has("address") && !said.has("email")

/** The reasons of the services, without spaces, hyphens and underscores. */
const REASONS: Readonly<Record<string, string>> = {
  ...{ bounce: "bounce", bounced: "bounce", hardbounce: "bounce", cleaned: "bounce" },
  ...{ invalid: "bounce", invalidemail: "bounce", undeliverable: "bounce" },
  ...{ complaint: "complaint", complained: "complaint", spamcomplaint: "complaint" },
  ...{ spam: "complaint", spamreport: "complaint", abuse: "complaint" },
  ...{ unsubscribe: "unsubscribe", unsubscribed: "unsubscribe", optout: "unsubscribe" },
  ...{ optedout: "unsubscribe", disabled: "unsubscribe" },
  ...{ manual: "manual", manualsuppression: "manual", blocklisted: "manual", blocked: "manual" },
}

const plain = (text: string): string => text.toLowerCase().replaceAll(/[\s_-]/g, "")

/** What the cells of a row say; none where they say nothing that is known. */
function reasonOf(said: Said): string | undefined {
  const word = REASONS[plain(said.text("reason"))]
  if (word === "manual" && plain(said.text("origin")) === "recipient") return "unsubscribe"
  if (word) return word
  const state =
    REASONS[plain(said.text("status"))] ?? REASONS[plain(said.text("unsubscribe_reason"))]
  if (state) return state
  if (said.text("cleaned_at") !== "" || isRefusal(said)) return "bounce"
  return standingOf(said.row.values) === "unsubscribed" ? "unsubscribe" : undefined
}

/** The words of a mail server: a code of RFC 3463 or of SMTP, or what a service says of a bad address. */
const isRefusal = (said: Said): boolean =>
  /^[45]\.\d/.test(said.text("status")) ||
  said.text("code") !== "" ||
  said.text("error") !== "" ||
  /^[45]\d\d\b|\b[45]\.\d\.\d|\b(domain|mailbox|address|recipient|user)\b/i.test(
    said.text("reason"),
  )

/** What the columns of a file say where its cells say nothing: SendGrid and Mailgun have a file for each reason. */
function usualReason(said: Said): string | undefined {
  if (isMailgun(said)) return "unsubscribe"
  if (said.has("ip") || (isOnlyAddress(said) && said.has("created_at"))) return "complaint"
  return said.has("email") && said.has("created") ? "unsubscribe" : undefined
}

const LONGEST_NOTE = 500

/** The note of the file, or what another service says of the suppression, with its day. */
function noteOf(said: Said, note: string | undefined): string | undefined {
  if (said.has("note") || said.has("scope") || said.has("scope_type"))
    return said.text("note") || note
  const reason = REASONS[plain(said.text("reason"))] ? "" : said.text("reason")
  const words = [said.text("code"), said.text("error"), reason, said.text("unsubscribe_reason")]
  const all = [note ?? "", dayOf(said), words.filter(Boolean).join(" ")].filter(Boolean)
  return (
    all
      .join(": ")
      .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
      .slice(0, LONGEST_NOTE)
      .toWellFormed() || undefined
  )
}

/** A day from a time of ISO 8601 or RFC 5322, or from seconds since 1970. */
function dayOf(said: Said): string {
  const names = ["created", "created_at", "unsubscribed_at", "cleaned_at"]
  const text = names.map((name) => said.text(name)).find(Boolean) ?? ""
  const [day] = /^\d{4}-\d\d-\d\d/.exec(text) ?? []
  if (day) return day
  const time = new Date(/^\d{9,10}(\.\d+)?$/.test(text) ? Number(text) * 1000 : text)
  return Number.isNaN(time.getTime()) ? text : time.toISOString().slice(0, 10)
}
