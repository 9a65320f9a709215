import fc from "../harness/properties"

/** What a made-up client does: where it comes in, what it says, in which pieces, and how it leaves. */
export interface Dialogue {
  port: "submission" | "inbound"
  /** `login`: behind STARTTLS and AUTH, where there is AUTH. */
  start: "plain" | "tls" | "login"
  bytes: Buffer
  cuts: number[]
  leaves: "quits" | "goes"
}

const COMMANDS = [
  ...[
    "EHLO me.test",
    "HELO me.test",
    "EHLO",
    "EHLO [127.0.0.1]",
    "LHLO x",
    "RSET",
    "NOOP",
    "NOOP x",
  ],
  ...["MAIL FROM:<a@example.test>", "MAIL FROM:<>", "MAIL FROM:<a@b.test> SIZE=100 BODY=8BITMIME"],
  ...[
    "MAIL FROM:<bell@example.test> SMTPUTF8",
    "MAIL FROM: <a@b.test>",
    "MAIL FROM:a@b.test",
    "MAIL",
  ],
  ...[
    "RCPT TO:<ann@example.test>",
    "RCPT TO:<any@in.example>",
    "RCPT TO:<postmaster>",
    "RCPT TO:<>",
  ],
  ...[
    "RCPT TO:<any@in.example> NOTIFY=NEVER ORCPT=rfc822;x",
    "RCPT TO:<@a:b@c>",
    "rcpt to:<x@in.example>",
  ],
  ...[
    "DATA",
    "DATA x",
    "BDAT 3 LAST",
    "VRFY ann",
    "EXPN all",
    "HELP",
    "TURN",
    "QUIT x",
    "STARTTLS x",
  ],
  ...[
    "AUTH PLAIN",
    "AUTH LOGIN",
    "AUTH PLAIN AHN2YwB4",
    "AUTH",
    "*",
    "c3Zj",
    "=",
    "AUTH XOAUTH2 x",
  ],
  ...["PROXY TCP4 1.2.3.4 1.2.3.4 1 2", "GET / HTTP/1.1", "XCLIENT ADDR=1.2.3.4", "__proto__", ""],
]

const MAILS = [
  "From: bell@example.test\r\nSubject: x\r\n\r\nhi\r\n.",
  "From: bell@example.test\r\nMessage-ID: <1@x>\r\nX-Svc-Tag: a\r\n\r\n..\r\n.",
  "Subject: none\r\n\r\n\r\n.",
  "From: a@b.test, c@d.test\r\nFrom: x\r\n\r\nhi\r\n.",
  "From: bell@example.test\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\r\nx\r\n--a--\r\n.",
  "\r\n.",
  ".",
]

const FLOW = [
  ...["EHLO me.test", "MAIL FROM:<bell@example.test>", "RCPT TO:<any@in.example>"],
  ...["RCPT TO:<ann@example.test>", "DATA", "From: bell@example.test\r\n\r\nhi\r\n."],
].join("\r\n")

const junk = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  fc.constantFrom(
    "\0",
    "\n",
    "\r",
    "\xff\xfd",
    "A".repeat(2100),
    "\x16\x03\x01\x02\x00\x01",
    "é".repeat(900),
  ),
)

const line = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom(...COMMANDS) },
  { weight: 4, arbitrary: fc.constantFrom(...MAILS) },
  { weight: 5, arbitrary: fc.constant(FLOW) },
  { weight: 1, arbitrary: fc.constant("STARTTLS") },
  {
    weight: 2,
    arbitrary: fc.string({ maxLength: 80 }).map((text) => text.replace(/[\r\n\0]/g, "")),
  },
  { weight: 1, arbitrary: junk },
)

export const dialogue: fc.Arbitrary<Dialogue> = fc.record({
  port: fc.constantFrom("submission", "inbound"),
  start: fc.oneof(
    { weight: 4, arbitrary: fc.constant("plain" as const) },
    { weight: 1, arbitrary: fc.constant("tls" as const) },
    { weight: 2, arbitrary: fc.constant("login" as const) },
  ),
  bytes: fc
    .array(line, { maxLength: 14 })
    .map((lines) => Buffer.from(lines.map((one) => `${one}\r\n`).join(""), "latin1")),
  cuts: fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 4 }),
  leaves: fc.oneof(
    { weight: 9, arbitrary: fc.constant("quits" as const) },
    { weight: 1, arbitrary: fc.constant("goes" as const) },
  ),
})
