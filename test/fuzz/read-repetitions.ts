/** Reads texts that consist of one repetition, in every place of a mail, and prints one line of JSON. */
import { spamScore } from "../../src/inbound/spam-score"
import { classify } from "../../src/lib/auto-reply"
import { extractCode } from "../../src/lib/code-extraction"
import { extractLink } from "../../src/lib/link-extraction"
import type { MailPart, SeenMail } from "../../src/lib/seen-mail"
import { strippedText } from "../../src/lib/stripped-text"

const FIELD_BYTES = 64_000
const NONE = { spf: null, dkim: null, dmarc: null, arc: null }

/** Beginnings of what the patterns look for: a pattern that tries again at each of them takes hours. */
const REPEATED = [
  ...["delivery message ", "mail failed ", "message a b c d e f g ", "could not ", "----", "--- "],
  ...["\n--- the header ", "host a.a.a.a.a.a.a.a.", "said 550", "550 550 ", ": : : ", "to a@"],
  ...["message to <", "dda:smtp=a", "<a@b.c>:\n", "a@b...", "smtp:", '"""', "((((", "recipient: "],
  ...["On 1:1 ", "From: ", "*From*", "12:12 wrote", "code is ", "is your ", "1 2 3 4 ", "123-"],
  ...["ABC-", "code:::: ", "http://a", "<a href=http://a.b ", "</a", 'style="display:none '],
  ...['<p style="display:none">aaaa', "\u200ba", "earn up to $1,1,1,1 ", "work from home "],
  ...["verify your account ", "million ", "a.b.", "xn--", "http://a@a@a@", "http://1.1.1.1:"],
  ...["=?utf-8?q?a?= ", "Final-Recipient: rfc822; a@b\n", "Status: 5.1.", "5.1.1.1.1.", "> "],
  ...["utf-8; \\x{", " \t", "\n\n", "-- \n", "______________", "sent from ", "auto-", "[", "写道"],
]

const size = Number(process.argv[2])
let read = 0

for (const token of REPEATED) {
  const text = token.repeat(Math.ceil(size / token.length))
  const field = [token.repeat(Math.ceil(FIELD_BYTES / token.length))]
  const part = (content_type: string): MailPart => {
    const content = Buffer.from(text)
    return { content_type, params: {}, filename: "a.xml", headers: {}, content }
  }
  const names = ["from", "subject", "auto-submitted", "precedence", "reply-to", "content-type"]
  const others = ["x-failed-recipients", "in-reply-to", "references", "delivered-to"]
  const headers = Object.fromEntries([...names, ...others].map((name) => [name, field]))
  const types = ["message/delivery-status", "message/rfc822", "text/xml"]
  const mail: SeenMail = { headers, text, html: text, parts: types.map(part), envelope_from: "" }
  const html_only = { ...mail, text: null, parts: [] }
  const arf = { ...mail, parts: [part("message/feedback-report"), part("message/rfc822")] }
  for (const one of [mail, { ...mail, parts: [] }, html_only, arf]) {
    classify(one)
    spamScore(one, NONE)
    const texts = { subject: field[0] ?? null, text: one.text, html: one.html }
    extractCode(texts)
    extractLink(texts)
    strippedText(one.text ?? "")
    read++
  }
}
console.log(JSON.stringify({ read }))
