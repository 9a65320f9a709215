/** Reads as many broken mails as the argument says, and prints one line of JSON about them. */

import { spamScore } from "../../src/inbound/spam-score"
import { classify } from "../../src/lib/auto-reply"
import { extractCode } from "../../src/lib/code-extraction"
import { extractLink } from "../../src/lib/link-extraction"
import { strippedText } from "../../src/lib/stripped-text"
import { seen } from "../fixtures/reports/mime"
import fc from "../harness/properties"
import { broken } from "./broken-mails"

const SEED = 13
const MEGABYTE = 1024 * 1024
const kinds: Record<string, number> = {}
const wrong: string[] = []
let read = 0
let settled = 0
const runs = Number(process.argv[2])

const rss = () => {
  Bun.gc(true)
  return process.memoryUsage().rss
}

function readOne(raw: Buffer) {
  const mail = seen(raw, read % 2 === 0 ? "" : "sender@sender.example")
  const found = classify(mail)
  kinds[found.kind] = (kinds[found.kind] ?? 0) + 1
  const texts = { subject: mail.headers.subject?.[0] ?? null, text: mail.text, html: mail.html }
  const said = {
    found,
    stripped: strippedText(mail.text ?? ""),
    code: extractCode(texts),
    link: extractLink(texts),
    spam: spamScore(mail, { spf: "none", dkim: "fail", dmarc: "pass", arc: "temperror" }),
  }
  // It goes into the database as JSON text: neither engine takes NUL, nor half a character.
  const json = JSON.stringify(said)
  if (json.includes("\\u0000") || /\\ud[89a-f]/i.test(json)) wrong.push(json.slice(0, 500))
  if (++read === Math.ceil(runs / 4)) settled = rss()
}

fc.assert(fc.property(broken, readOne), { seed: SEED, numRuns: runs })
const kept = Math.round((rss() - settled) / MEGABYTE)
console.log(JSON.stringify({ read, kinds, wrong: wrong.slice(0, 5), kept }))
