/** Reads each bomb and says what it was and how much memory that took: one line of JSON a bomb. */

import { spamScore } from "../../src/inbound/spam-score"
import { classify } from "../../src/lib/auto-reply"
import { extractCode } from "../../src/lib/code-extraction"
import { extractLink } from "../../src/lib/link-extraction"
import { strippedText } from "../../src/lib/stripped-text"
import { BOMBS } from "../fixtures/reports/bombs"
import { seen } from "../fixtures/reports/mime"

const NONE = { spf: null, dkim: null, dmarc: null, arc: null }
const MEGABYTE = 1024 * 1024

const rss = () => process.memoryUsage().rss

for (const [name, make] of Object.entries(BOMBS)) {
  const raw = Buffer.from(make())
  Bun.gc(true)
  const before = rss()
  const begun = performance.now()
  const mail = seen(raw, "")
  const texts = { subject: mail.headers.subject?.[0] ?? null, text: mail.text, html: mail.html }
  const { kind } = classify(mail)
  strippedText(mail.text ?? "")
  extractCode(texts)
  extractLink(texts)
  spamScore(mail, NONE)
  const ms = Math.round(performance.now() - begun)
  const grown = Math.round((rss() - before) / MEGABYTE)
  console.log(JSON.stringify({ name, kind, ms, grown, size: Math.round(raw.length / MEGABYTE) }))
}
