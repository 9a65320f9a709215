/** Longer text is not searched: what an answer adds stands at its beginning. */
const MOST_TEXT = 256 * 1024
const MOST_LINES = 5_000

/** A line that introduces a quotation is short; some programs wrap it. */
const MOST_INTRODUCTION = 600
const MOST_INTRODUCTION_LINES = 4

/**
 * What the writer of a reply added: without the quoted message, the line that introduces it, the
 * signature behind `-- ` (RFC 3676, 4.3) and the advertisement of a telephone. Text between quoted lines
 * stays. Where nothing would be left, the whole text stays. Never throws.
 */
export function strippedText(text: string): string {
  const whole = text.slice(0, MOST_TEXT).replace(/\r\n?/g, "\n")
  const lines = whole.split("\n", MOST_LINES)
  const stripped = tidied(withoutSignature(withoutQuotes(lines)))
  return stripped === "" ? whole.trim().toWellFormed() : stripped.toWellFormed()
}

const tidied = (lines: string[]) =>
  lines
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()

const QUOTED = /^ {0,3}>/

function withoutQuotes(lines: string[]): string[] {
  const kept: string[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at] ?? ""
    if (FORWARDED.test(line.slice(0, 200))) return [...kept, ...lines.slice(at)]
    if (endsReply(lines, at)) break
    const introduction = QUOTED.test(line) ? 0 : introductionAt(lines, at)
    if (introduction > 0) {
      at += introduction
      // Where no line is marked as quoted, everything below is.
      if (!QUOTED.test(nextLine(lines, at))) break
    } else {
      if (!QUOTED.test(line)) kept.push(line)
      at++
    }
  }
  return kept
}

const nextLine = (lines: string[], from: number): string => {
  let at = from
  while (at < from + 3 && lines[at]?.trim() === "") at++
  return lines[at] ?? ""
}

/** Lines behind which the older message stands to the end: Outlook's rule and its header. */
const endsReply = (lines: string[], at: number): boolean =>
  SEPARATOR.test((lines[at] ?? "").slice(0, 200)) ||
  isHeader(lines, at) ||
  (RULE.test(lines[at] ?? "") && isHeader(lines, at + 1 + blanks(lines, at + 1)))

const blanks = (lines: string[], at: number) => (lines[at]?.trim() === "" ? 1 : 0)

const RULE = /^\s{0,3}[_-]{10,200}\s*$/

const ORIGINAL = [
  "original (?:message|appointment|e-?mail)",
  "(?:ursprüngliche|originale?) (?:nachricht|e-?mail)",
  "message (?:d['’]origine|original)",
  "mensaje original",
  "messaggio originale",
  "mensagem original",
  "oorspronkelijk bericht",
  "ursprungligt meddelande",
  "(?:original|oprindelig|opprinnelig) (?:besked|meddelelse|melding)",
  "wiadomość oryginalna",
  "původní zpráva",
  "alkuperäinen viesti",
  "исходное сообщение",
  "оригинальное сообщение",
  "orijinal (?:ileti|mesaj)",
  "原始邮件",
  "原始郵件",
  "原邮件",
  "元のメッセージ",
  "원본 메일",
].join("|")

/** What is forwarded is meant to be read: from here on everything stays. */
const FORWARDED =
  /^\s{0,3}(?:begin forwarded message:|anfang der weitergeleiteten nachricht:|-{2,12}\s*(?:forwarded message|(?:weitergeleitete|anfang der weitergeleiteten) nachricht|message transf[ée]r[ée]|mensaje reenviado|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|vidarebefordrat meddelande|пересылаемое сообщение|转发的邮件|转发邮件信息)\s*-{2,12})/iu

const SEPARATOR = new RegExp(
  `^\\s{0,3}(?:-{2,12}\\s*(?:${ORIGINAL})\\s*-{2,12}|\\W{0,10}(?:please )?(?:type|write|reply)(?: your reply)? above this line\\b)`,
  "iu",
)

/** The fields of the header that Outlook puts over the older message, in its languages. */
const FIELDS: RegExp[] = [
  /^(?:from|von|de|da|van|fra|från|od|от|lähettäjä|kimden|gönderen|发件人|寄件者|差出人|보낸 사람)$/iu,
  /^(?:sent|date|gesendet|datum|envoyé|date d['’]envoi|enviado(?: el| em)?|fecha|data|inviato|verzonden|sendt|dato|skickat|wysłano|отправлено|дата|odesláno|lähetetty|gönderildi|tarih|发送时间|日期|寄件日期|送信日時|日付|보낸 날짜)$/iu,
  /^(?:to|an|à|a|para|aan|til|till|do|кому|komu|vastaanottaja|kime|kimlere|收件人|收件者|宛先|받는 사람)$/iu,
  /^(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|emne|ämne|temat|тема|předmět|aihe|konu|主题|主旨|件名|제목)$/iu,
]

const LABELLED = /^[\s*]{0,6}([\p{L}'’ ]{1,20}?)\s?\*?\s?[:：]/u
const MOST_HEADER_LINES = 8

/** A field of the sender, and two more kinds of fields within the next lines. */
function isHeader(lines: string[], at: number): boolean {
  if (kindOf(lines[at]) !== 0) return false
  const kinds = new Set<number>()
  for (const line of lines.slice(at, at + MOST_HEADER_LINES)) kinds.add(kindOf(line))
  kinds.delete(-1)
  return kinds.size >= 3
}

function kindOf(line: string | undefined): number {
  const label = LABELLED.exec((line ?? "").slice(0, 100))?.[1]?.trim() ?? ""
  return label === "" ? -1 : FIELDS.findIndex((field) => field.test(label))
}

const WROTE = [
  "wrote",
  "writes",
  "schrieb(?: am)?",
  "a écrit",
  "escribió",
  "(?:ha )?scritto",
  "escreveu",
  "schreef",
  "skrev",
  "skreiv",
  "pisze",
  "napisał(?:\\(a\\)|a)?",
  "napsal(?:\\(a\\)|a)?",
  "пишет",
  "писал(?:\\(а\\)|а)?",
  "написал(?:\\(а\\)|а)?",
  "kirjoitti",
  "yazdı",
  "a scris",
  "írta",
  "έγραψε",
  "写道",
  "寫道",
  "님이 작성",
].join("|")

const MAILBOX = "[^\\s<>]{1,100}@[^\\s<>]{1,200}"

/** It names a time and a writer, and ends in a colon: `On 22 Nov 2026, at 10:14, Ann <ann@b.test> wrote:` */
const INTRODUCTIONS = [
  new RegExp(`(?:${WROTE})\\s{0,2}[:：]$`, "iu"),
  /\s(?:schrieb|schreef|skrev|napisał(?:\(a\))?)\s.{1,200}[:：]$/iu,
  new RegExp(`<${MAILBOX}>\\)?\\s?[:：]$`, "u"),
  new RegExp(`\\(${MAILBOX}\\)\\s?[:：]$`, "u"),
]

const DATED =
  /\d{1,2}[:.h]\d{2}|\b(?:19|20)\d{2}\b|(?:19|20)\d{2}[年년]|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}/u

const BEGINS =
  /^\s{0,3}(?:on|am|le|el|il|em|op|den|w|dne|ne|po|út|st|čt|pá|so|su|ma|ti|ke|to|pe|la|în|στις|вс|пн|вт|ср|чт|пт|сб|在|于|\d)[\s,.]/iu

/** How many lines from `at` on introduce a quotation; 0 when they do not. */
function introductionAt(lines: string[], at: number): number {
  const first = lines[at] ?? ""
  const begins = DATED.test(first.slice(0, 200)) || BEGINS.test(first.slice(0, 20))
  let joined = ""
  for (let count = 1; count <= (begins ? MOST_INTRODUCTION_LINES : 1); count++) {
    const line = lines[at + count - 1]?.trim() ?? ""
    if (line === "" || joined.length + line.length > MOST_INTRODUCTION) return 0
    joined = joined === "" ? line : `${joined} ${line}`
    const ends = /[:：]$/.test(joined) && DATED.test(joined)
    if (ends && INTRODUCTIONS.some((one) => one.test(joined))) return count
  }
  return 0
}

const SIGNATURE = /^-- ?$/

const DEVICE = new RegExp(
  [
    "sent from (?:my|mail|outlook|yahoo|proton|the|samsung|a|an)\\b",
    "sent (?:with|via) (?:proton|my|the|outlook|mail|superhuman|spark|tutanota|tuta|fairemail|k-9)",
    "get outlook for",
    "(?:diese nachricht wurde )?von mein(?:em|er) .{1,60} gesendet",
    "gesendet (?:von|mit|aus) ",
    "holen sie sich outlook|outlook für (?:ios|android)",
    "envoyé (?:de|depuis|à partir de) ",
    "télécharger outlook|obtenir outlook",
    "enviado (?:desde|do|de|com|a partir) ",
    "obtener outlook|obter o outlook",
    "inviato (?:da|dal|con) ",
    "verzonden (?:vanaf|met|van|via) ",
    "skickat från|sendt fra|lähetetty ",
    "wysłan[eo] z ",
    "odesláno z",
    "отправлено (?:из|с|от) ",
    "iphone ?から送信|私の.{1,20}から送信",
    "从我的.{1,20}发送|发自我的|發自我的|从.{1,20}发送",
    "나의 .{1,20}에서 보냄",
    "iphone'umdan gönderildi",
  ]
    .map((start) => `^\\s{0,3}[[<(_*-]?\\s?(?:${start})`)
    .join("|"),
  "iu",
)

/** Behind an advertisement stand at most its address and an empty line. */
const MOST_DEVICE_LINES = 4
const MOST_SIGNATURE_LINES = 15

function withoutSignature(lines: string[]): string[] {
  const last = lines.findLastIndex((line) => line.trim() !== "")
  const mark = lines.findIndex(
    (line, at) => line === "-- " || (SIGNATURE.test(line) && last - at <= MOST_SIGNATURE_LINES),
  )
  const body = mark === -1 ? lines : lines.slice(0, mark)
  const end = body.findLastIndex((line) => line.trim() !== "") + 1
  const from = Math.max(0, end - MOST_DEVICE_LINES)
  const device = body.findIndex((line, at) => at >= from && DEVICE.test(line.slice(0, 200)))
  return device === -1 ? body : body.slice(0, device)
}
