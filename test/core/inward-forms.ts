import fc from "../harness/properties"
import type { NameServer, Say } from "./name-server"
import { nameServer } from "./name-server"

/** Addresses that nobody may reach: each form below is one of them in disguise. */
const inner = fc.oneof(
  { weight: 4, arbitrary: fc.constant([127, 0, 0, 1]) },
  fc.tuple(fc.constant(127), byte(), byte(), byte()).filter(([, , , last]) => last !== FRIEND_BYTE),
  fc.constant([0, 0, 0, 0]),
  fc.constant([169, 254, 169, 254]),
  fc.tuple(fc.constant(10), byte(), byte(), byte()),
  fc.constant([192, 168, 0, 1]),
  fc.constant([100, 64, 0, 1]),
  fc.constant([255, 255, 255, 255]),
)

/** The last byte of the one loopback address that the test allows. */
const FRIEND_BYTE = 2
export const FRIEND = `127.0.0.${FRIEND_BYTE}`

function byte() {
  return fc.integer({ min: 0, max: 255 })
}

const numberOf = (bytes: number[]) => bytes.reduce((sum, one) => sum * 256 + one, 0)
const hex = (value: number, digits = 0) => value.toString(16).padStart(digits, "0")

/** One number of an IPv4 address as C reads it: decimal, octal or hexadecimal, with zeros. */
const spelled = (value: number) =>
  fc.constantFrom(
    `${value}`,
    `0${value.toString(8)}`,
    `0000${value.toString(8)}`,
    `0x${hex(value)}`,
    `0X${hex(value).toUpperCase()}`,
    `0x0000${hex(value)}`,
  )

/** `127.1` and its like: the last number takes all the bytes that are left. */
const numbers = inner.chain((bytes) =>
  fc.integer({ min: 0, max: 3 }).chain((dots) => {
    const parts = [...bytes.slice(0, dots), numberOf(bytes.slice(dots))]
    return fc.tuple(...parts.map(spelled)).map((texts) => texts.join("."))
  }),
)

const CIRCLED = "⓪①②③④⑤⑥⑦⑧⑨"
const WIDE = "０１２３４５６７８９"
const BOLD = [..."𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"]

/** Digits and dots of other scripts, percent-encoding, the dot of the root. */
const disguised = fc
  .tuple(numbers, fc.constantFrom("plain", "circled", "wide", "bold", "percent", "dots", "rooted"))
  .map(([text, way]) => {
    const digits = (letters: string | string[]) =>
      text.replace(/\d/g, (digit) => letters[Number(digit)] ?? digit)
    if (way === "circled") return digits(CIRCLED)
    if (way === "wide") return digits(WIDE)
    if (way === "bold") return digits(BOLD)
    if (way === "percent") return text.replace(/./g, (one) => `%${hex(one.charCodeAt(0))}`)
    if (way === "dots") return text.replace(/\./g, () => "。")
    return way === "rooted" ? `${text}.` : text
  })

/** The ways in which IPv6 carries IPv4, and the inner networks that it has itself. */
const six = fc
  .tuple(inner, fc.integer({ min: 0, max: 15 }))
  .map(([bytes, way]) => {
    const [high, low] = [hex(numberOf(bytes.slice(0, 2))), hex(numberOf(bytes.slice(2)))]
    const dotted = bytes.join(".")
    const flipped = bytes.map((one) => 255 - one)
    const [not_high, not_low] = [
      hex(numberOf(flipped.slice(0, 2))),
      hex(numberOf(flipped.slice(2))),
    ]
    return [
      "::1",
      "0:0:0:0:0:0:0:1",
      "0000:0000:0000:0000:0000:0000:0000:0001",
      "::",
      `::ffff:${dotted}`,
      `::FFFF:${high}:${low}`,
      `0:0:0:0:0:ffff:${high}:${low}`,
      `::${high}:${low}`,
      `::ffff:0:${dotted}`,
      `64:ff9b::${dotted}`,
      `64:ff9b:1::${high}:${low}`,
      `2002:${high}:${low}::1`,
      `2001:0:4136:e378:8000:63bf:${not_high}:${not_low}`,
      `fe80::5efe:${high}:${low}`,
      `fd00:ec2::${low}`,
      `ff02::${low}`,
    ][way]
  })
  .map((address) => `[${address}]`)

const localNames = fc.constantFrom(
  ...["localhost", "LOCALHOST", "LocalHost.", "localhost.", "a.localhost", "x.y.localhost."],
  ...["loca%6Chost", "ｌｏｃａｌｈｏｓｔ", "lo\tcalhost", "localhost。"],
)

/** What the name server of the test says to the labels below, in turn. */
const stories: Record<string, (turn: number, kind: string) => Say> = {
  inside: (_, kind) => (kind === "A" ? [{ address: "127.0.0.1" }] : []),
  inside6: (_, kind) => (kind === "AAAA" ? [{ address: "::1" }] : []),
  mapped: (_, kind) => (kind === "AAAA" ? [{ address: "::ffff:7f00:1" }] : []),
  nat64: (_, kind) => (kind === "AAAA" ? [{ address: "64:ff9b::7f00:1" }] : []),
  private: (_, kind) => (kind === "A" ? [{ address: "10.0.0.1" }] : []),
  mixed: (_, kind) => (kind === "A" ? [{ address: FRIEND }, { address: "127.0.0.1" }] : []),
  inner: (_, kind) => (kind === "A" ? [{ address: "127.0.0.1" }, { address: FRIEND }] : []),
  split: (_, kind) => [{ address: kind === "A" ? FRIEND : "::1" }],
  flip: (turn, kind) => (kind === "A" ? [{ address: turn % 2 === 0 ? FRIEND : "127.0.0.1" }] : []),
  late: (turn, kind) => (kind === "A" ? [{ address: turn < 3 ? FRIEND : "127.0.0.1" }] : []),
  nothing: () => "NXDOMAIN",
  broken: () => "SERVFAIL",
}

/** Names whose answers change: a name in front makes each of them new, or the same again. */
export const rebinding = fc
  .tuple(fc.constantFrom(...Object.keys(stories)), fc.constantFrom("", "a.", "b.", "127.0.0.1."))
  .map(([story, front]) => `${front}${story}.rebind.test`)

export const scriptedNames = (): Promise<NameServer> => {
  const turns = new Map<string, number>()
  return nameServer((name, kind) => {
    const story = stories[name.toLowerCase().split(".").at(-3) ?? ""]
    const turn = turns.get(`${name} ${kind}`) ?? 0
    turns.set(`${name} ${kind}`, turn + 1)
    return story ? story(turn, kind) : "NXDOMAIN"
  })
}

const hosts = fc.oneof(numbers, disguised, six, localNames, rebinding)

/** Around the host: schemes, user names, ports and paths that parsers read differently. */
export const inwardUrl = (port: number) =>
  fc
    .tuple(
      hosts,
      fc.constantFrom(
        "http://",
        "HTTP://",
        "http:",
        "http:/",
        "http:\\\\",
        "https://",
        "h\nttp://",
      ),
      fc.oneof(
        { weight: 5, arbitrary: fc.constant("") },
        fc.constantFrom("good.rebind.test@", "user:pass@", "@", "good.rebind.test\\@", "a%40b@"),
      ),
      fc.constantFrom(`:${port}`, `:0000${port}`, `:${port}`, `:\t${port}`),
      fc.constantFrom("/", "", "/@good.rebind.test", "?@good.rebind.test", "#@good.rebind.test"),
      fc.constantFrom("", "", "", " ", "\u0000", "\n"),
    )
    .map(([host, scheme, user, at, path, before]) => before + scheme + user + host + at + path)
