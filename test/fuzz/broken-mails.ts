import { AGGREGATES } from "../fixtures/reports/aggregates"
import { FEEDBACK } from "../fixtures/reports/arf"
import { AUTO_REPLIES, NO_AUTO_REPLIES } from "../fixtures/reports/auto-replies"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { HAM, SPAM } from "../fixtures/reports/spam"
import fc from "../harness/properties"

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

/** A mail of the corpus with some changes: most are still mail, and none is what it was. */
export const broken: fc.Arbitrary<Buffer> = fc
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
