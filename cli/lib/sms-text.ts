import type { Components } from "../../src/client/components"
import { number } from "./cells"
import { eventText, paintStatus, statusCell, statusMark } from "./email-text"
import { ago, type Columns, count, fields, idColumn, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"
import { age } from "./time"

type Sms = Components["Sms"]
type SmsLine = Omit<Components["SmsSummary"], "sent_at">

/** The number of the other person: of a text that came in, it stands behind an arrow. */
export const personOf = ({ direction, to, from }: Pick<SmsLine, "direction" | "to" | "from">) =>
  direction === "inbound" ? `← ${from}` : to

export const smsColumns: Columns<SmsLine> = {
  ID: idColumn("sms"),
  TO: wide(personOf, "last"),
  TEXT: wide(({ body }) => body, "first"),
  PARTS: count(({ segments }) => segments, 1),
  STATUS: { cell: ({ status }) => statusCell({ status, status_reason: null }), paint: paintStatus },
  AGE: ago(({ created_at }) => created_at),
}

/** A text with its way: its numbers, what it costs, and what the provider said. */
export function smsText(sms: Sms, paint: Paint): string {
  const { error, price, encoding, segments, scheduled_at } = sms
  const head = fields(
    [
      ["id", sms.id],
      ["from", sms.from],
      ["to", sms.to],
      ["segments", encoding && `${segments} (${encoding})`],
      ["provider", sms.provider],
      ["its id", sms.provider_message_id],
      ["price", price && `${price.amount} ${price.currency}`],
      ["test", sms.is_test ? "yes, nothing left this server" : null],
      ["answers", sms.in_reply_to],
      ["tags", sms.tags.join(", ")],
      ["scheduled", scheduled_at && `${scheduled_at} (${age(scheduled_at)})`],
      [
        "error",
        error
          ? `${[error.code, error.provider_code].filter(Boolean).join(", ")}: ${error.message}`
          : null,
      ],
      ["accepted", `${sms.created_at} (${age(sms.created_at)} ago)`],
    ],
    paint,
  )
  const lines = sms.timeline.map((entry) => eventText({ ...entry, recipient_email: null }, paint))
  return [statusMark(sms, paint), head, "", cleanText(sms.body ?? ""), "", ...lines]
    .join("\n")
    .trimEnd()
}

/** Offending characters that are named; the rest is a number. */
const MOST_NAMED = 10

/** What a text costs, which characters make it long, and the text that would be shorter. */
export function segmentsText(inspection: Components["SmsSegments"], paint: Paint): string {
  const { encoding, segments, characters, per_segment, offending, gsm7_suggestion } = inspection
  const many = `${number(segments)} ${segments === 1 ? "segment" : "segments"}`
  const names = offending
    .slice(0, MOST_NAMED)
    .map(({ char, index }) => `${cleanLine(char)} at ${index}`)
  const rest = offending.length - names.length
  return [
    `${encoding}, ${many} of ${per_segment}, ${number(characters)} characters`,
    ...(names.length > 0
      ? [`not in GSM-7: ${names.join(", ")}${rest > 0 ? `, and ${rest} more` : ""}`]
      : []),
    ...(gsm7_suggestion === null
      ? []
      : ["", paint.dim("in GSM-7, as with --smart-encoding on:"), cleanText(gsm7_suggestion)]),
  ].join("\n")
}
