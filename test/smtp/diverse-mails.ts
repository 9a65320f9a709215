/** A mail in one of the shapes that programs write. */
export interface DiverseMail {
  message_id: string
  raw: Buffer
  /** What of it has to arrive, byte for byte, behind what the server adds at the top. */
  kept: Buffer
}

type Random = () => number

/** The same seed gives the same mails. All of them come from example.test. */
export function diverseMails(count: number, seed = 1): DiverseMail[] {
  let state = seed
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  return Array.from({ length: count }, (_, number) => diverseMail(random, number))
}

const one = <Item>(random: Random, list: readonly Item[]): Item =>
  list[Math.floor(random() * list.length)] as Item

function diverseMail(random: Random, number: number): DiverseMail {
  const message_id = `<${number}.${Math.floor(random() * 1e9)}@client.test>`
  const { fields: content, body } = part(random, 0)
  const own = [
    one(random, FROM),
    one(random, TO),
    `Message-ID:${one(random, [" ", "\r\n ", "\t"])}${message_id}`,
    `Date: Sun, ${one(random, ["22", " 2"])} Nov 2026 10:00:${10 + (number % 50)} +0${number % 10}00`,
    ...(random() < 0.9 ? [one(random, SUBJECT)] : []),
    ...(content.length > 0 ? ["MIME-Version: 1.0"] : []),
    ...content,
  ]
  const extra = EXTRA.filter(() => random() < 0.25)
  const removed = REMOVED.filter(() => random() < 0.2)
  const all = shuffled(random, [...own, ...extra, ...removed])
  const written = (fields: string[]) =>
    Buffer.from(`${fields.join("\r\n")}\r\n\r\n${body}`, "latin1")
  const kept = all.filter((field) => !removed.includes(field))
  return { message_id, raw: written(all), kept: written(kept) }
}

function shuffled(random: Random, list: string[]): string[] {
  const keyed = list.map((item) => ({ item, key: random() }))
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item)
}

const FROM = [
  "From: bell@example.test",
  "From: Bell <bell@example.test>",
  'FROM: "Bell, of the tower" <bell@example.test>',
  "from:bell@example.test (Bell)",
  "From: =?utf-8?Q?Gl=C3=B6ckchen,_klein?=\r\n\t<bell@example.test>",
  "From:  <bell@example.test>",
]

const TO = [
  "To: ann@example.test",
  "To: Ann <ann@example.test>,\r\n Ben <ben@example.test>",
  "To: undisclosed-recipients:;",
  'to:"Ann \\"A.\\" Bell" <ann@example.test>',
  "To: =?iso-8859-1?B?Suz2cmc=?= <ann@example.test>",
]

const SUBJECT = [
  "Subject: Ding",
  "Subject:Ding  with   spaces ",
  `Subject: ${"a subject of many words ".repeat(12)}`,
  "Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n =?utf-8?Q?_von_=E2=9C=93?=",
  "subject:",
  "SUBJECT: Re: [list]\tTabs",
]

const EXTRA = [
  "Received: from a.test (a.test [192.0.2.1])\r\n\tby b.test with ESMTP id 1;\r\n\tSun, 22 Nov 2026 09:00:00 +0000",
  "Received: from c.test by a.test; Sun, 22 Nov 2026 08:00:00 +0000",
  "Reply-To: Desk <desk@example.test>",
  "Sender: daemon@client.test",
  "Resent-From: other@client.test",
  "Cc: Eve <eve@example.test>",
  `References:${" <a.very.long.id.of.a.message@client.test>\r\n".repeat(6)} <last@client.test>`,
  "In-Reply-To: <before@client.test>",
  "X-Mailer: Odd Mailer 1.0   ",
  "X-Empty:",
  "X-Folded: one\r\n\ttwo\r\n   three",
  "List-Unsubscribe: <https://example.test/u>, <mailto:u@example.test>",
  "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
  "Importance: high",
  "Precedence: bulk",
  "Auto-Submitted: auto-generated",
  `X-Long: ${"x".repeat(900)}`,
]

const REMOVED = [
  "Bcc: hidden@example.test,\r\n other@example.test",
  "Return-Path: <old@client.test>",
  "Delivered-To: someone@client.test",
  "DKIM-Signature: v=1; a=rsa-sha256; d=client.test; s=x;\r\n\th=from; bh=aaaa; b=bbbb",
  "Authentication-Results: mx.client.test; dkim=pass",
  "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=client.test; s=x; b=cccc",
  "X-SES-Source-ARN: arn",
  "X-Svc-Tag: bell",
  "X-Svc-Metadata-Order: 42",
]

interface Part {
  fields: string[]
  body: string
}

const MAX_DEPTH = 3

function part(random: Random, depth: number): Part {
  const kind = random()
  if (depth >= MAX_DEPTH || kind < 0.45) return text(random)
  if (kind < 0.55 && depth > 0) return file(random)
  if (kind < 0.6 && depth > 0) return message(random, depth)
  return multipart(random, depth)
}

function multipart(random: Random, depth: number): Part {
  const boundary = one(random, [
    `b${Math.floor(random() * 1e9)}`,
    `=_${depth}_${Math.floor(random() * 1e9)}`,
    `----=_Part ${depth} ${Math.floor(random() * 1e9)}`,
    `'a+b:${depth}${Math.floor(random() * 1e9)}?`,
  ])
  const subtype = one(random, ["mixed", "alternative", "related", "digest", "signed"])
  const inner = Array.from({ length: 1 + Math.floor(random() * 4) }, () => part(random, depth + 1))
  const eol = "\r\n"
  const parts = inner.map(({ fields, body }) => {
    const head = shuffled(random, fields).map((field) => field + eol)
    return `--${boundary}${one(random, ["", " "])}${eol}${head.join("")}${eol}${body}${eol}`
  })
  const type = `${one(random, ["Content-Type", "content-type"])}: multipart/${subtype};`
  const fold = one(random, [" ", "\r\n\t", "\r\n  "])
  const preamble = one(random, ["", "This is a message in MIME format.\r\n", "\r\n"])
  const epilogue = one(random, ["", "\r\n", "epilogue\r\n\r\n"])
  const body = `${preamble}${parts.join("")}--${boundary}--${eol}${epilogue}`
  return { fields: [`${type}${fold}boundary="${boundary}"`], body }
}

const WORDS = [
  "Ding",
  "dong.",
  "..",
  ".",
  "From here",
  "",
  "  ",
  "--",
  "a\tb",
  "=3D",
  "x".repeat(700),
]

const lines = (random: Random, more: string[] = []): string =>
  Array.from({ length: Math.floor(random() * 12) }, () => one(random, [...WORDS, ...more])).join(
    "\r\n",
  ) + one(random, ["", "\r\n", "\r\n\r\n\r\n"])

function text(random: Random): Part {
  const subtype = one(random, ["plain", "plain", "html", "calendar; method=REQUEST"])
  const type = (charset: string) => `Content-Type: text/${subtype}; charset=${charset}`
  const encoding = one(random, ["none", "7bit", "8bit", "8bit-latin1", "qp", "base64"])
  if (encoding === "none") return { fields: [], body: lines(random) }
  if (encoding === "7bit") {
    return { fields: [type("us-ascii"), "Content-Transfer-Encoding: 7bit"], body: lines(random) }
  }
  if (encoding === "8bit" || encoding === "8bit-latin1") {
    const is_utf8 = encoding === "8bit"
    const utf8 = Buffer.from("Grüße ✓").toString("latin1")
    const body = lines(random, is_utf8 ? [utf8, utf8] : ["Gr\xfc\xdfe", "caf\xe9"])
    const charset = is_utf8 ? '"utf-8"' : "iso-8859-1"
    return { fields: [type(charset), "Content-Transfer-Encoding: 8bit"], body }
  }
  if (encoding === "qp") {
    const body = `Gr=C3=BC=C3=9Fe =\r\nand =E2=9C=93 end=20\r\n=2E\r\n${lines(random).replaceAll("=", "=3D")}`
    return { fields: [type("UTF-8"), "Content-Transfer-Encoding: quoted-printable"], body }
  }
  return {
    fields: [type("utf-8"), "Content-Transfer-Encoding: base64"],
    body: base64(Buffer.from("Grüße ✓\n".repeat(1 + Math.floor(random() * 200)))),
  }
}

const base64 = (bytes: Buffer): string => bytes.toString("base64").replace(/.{76}/g, "$&\r\n")

function file(random: Random): Part {
  const bytes = Buffer.from(
    Array.from({ length: Math.floor(random() * 4_000) }, () => Math.floor(random() * 256)),
  )
  const disposition = one(random, [
    'Content-Disposition: attachment; filename="a b.pdf"',
    "Content-Disposition: attachment;\r\n filename*=utf-8''M%C3%A4rz.pdf",
    'Content-Disposition: ATTACHMENT;\r\n filename*0="long";\r\n filename*1="name.bin"',
    'Content-Disposition: inline; filename="=?utf-8?B?TcOkcnoucGRm?="',
    "Content-ID: <image@client.test>",
  ])
  const type = one(random, ["application/pdf", "image/png", "application/octet-stream"])
  return {
    fields: [`Content-Type: ${type}`, "Content-Transfer-Encoding: base64", disposition],
    body: base64(bytes),
  }
}

function message(random: Random, depth: number): Part {
  const { fields, body } = part(random, depth + 1)
  const head = ["From: x@y.test", "Subject: inner", ...fields].join("\r\n")
  return { fields: ["Content-Type: message/rfc822"], body: `${head}\r\n\r\n${body}` }
}
