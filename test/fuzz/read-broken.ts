/** Reads as many broken mails as the argument says, and prints one line of JSON about them. */
import fc from "fast-check"
import { spamScore } from "../../src/inbound/spam-score"
import { extractCode } from "../../src/lib/code-extraction"
import { extractLink } from "../../src/lib/link-extraction"
import { classify } from "../../src/lib/mail-kind"
import { strippedText } from "../../src/lib/stripped-text"
import { AGGREGATES } from "../fixtures/reports/aggregates"
import { FEEDBACK } from "../fixtures/reports/arf"
import { AUTO_REPLIES, NO_AUTO_REPLIES } from "../fixtures/reports/auto-replies"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { seen } from "../fixtures/reports/mime"
import { HAM, SPAM } from "../fixtures/reports/spam"

const SEED = 13
const MEGABYTE = 1024 * 1024
const corpus = [
  ...[...STANDARD_DSNS, ...TEXT_DSNS, ...FEEDBACK, ...AUTO_REPLIES, ...NO_AUTO_REPLIES],
  ...[...SPAM, ...HAM, ...AGGREGATES],
].map(({ raw }) => Buffer.from(raw))

const TOKENS = [
  ...[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "\0",
    "--=_boundary",
    "--=_boundary--",
    "Content-Type: ",
    ": ",
  ],
  ...[
    "multipart/mixed; boundary=",
    "message/rfc822",
    "Content-Transfer-Encoding: base64",
    "=?utf-8?",
  ],
  ...[
    "text/html",
    "=C3",
    "\xff\xfe",
    "\ud800",
    "charset=utf-16",
    "charset=nonsense",
    "filename*0*=",
  ],
  ...["Final-Recipient: ", "<", ">", ">>>>>>", "X".repeat(3_000), "\t".repeat(500), '"', "\\", ";"],
]

/** One change: bytes replaced, left out, repeated or put in. */
const change = fc.record({
  kind: fc.constantFrom("byte", "cut", "repeat", "token", "swap"),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.nat(400),
  byte: fc.nat(255),
  token: fc.constantFrom(...TOKENS),
})

const broken = fc
  .tuple(fc.constantFrom(...corpus), fc.array(change, { minLength: 1, maxLength: 12 }))
  .map(([raw, changes]) => changes.reduce(changed, raw))

type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never

function changed(raw: Buffer, { kind, at, length, byte, token }: Change): Buffer {
  const from = Math.floor(at * raw.length)
  const to = Math.min(raw.length, from + length)
  const parts: Record<typeof kind, Uint8Array[]> = {
    byte: [Buffer.from([byte]), raw.subarray(from + 1)],
    cut: [raw.subarray(to)],
    repeat: [raw.subarray(from, to), raw.subarray(from, to), raw.subarray(from)],
    token: [Buffer.from(token), raw.subarray(from)],
    swap: [raw.subarray(to), raw.subarray(from, to)],
  }
  return Buffer.concat([raw.subarray(0, from), ...parts[kind]])
}

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
