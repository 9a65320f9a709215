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

/** Marks of the reading direction and spaces of other widths say nothing here. */
const readable = (line: string) =>
  line
    .replace(/[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "")
    .replace(/[\u00a0\u202f]/g, " ")

function withoutQuotes(given: string[]): string[] {
  const lines = given.map(readable)
  const kept: string[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at] ?? ""
    if (FORWARDED.test(line.slice(0, 200))) return [...kept, ...given.slice(at)]
    if (endsReply(lines, at)) break
    const introduction = QUOTED.test(line) ? 0 : introductionAt(lines, at)
    if (introduction > 0) {
      at += introduction
      // Where no line is marked as quoted, everything below is.
      if (!QUOTED.test(lines[nextText(lines, at)] ?? "")) break
    } else {
      if (!QUOTED.test(line)) kept.push(given[at] ?? "")
      at++
    }
  }
  return kept
}

/** The place of the next line with text, behind up to three empty ones. */
function nextText(lines: string[], from: number): number {
  let at = from
  while (at < from + 3 && lines[at]?.trim() === "") at++
  return at
}

/** Lines behind which the older message stands to the end: its header, with or without a rule over it. */
function endsReply(lines: string[], at: number): boolean {
  const line = lines[at] ?? ""
  if (SEPARATOR.test(line.slice(0, 200)) || isHeader(lines, at)) return true
  return RULE.test(line) && isHeader(lines, nextText(lines, at + 1), true)
}

const RULE = /^\s{0,3}[_=*~‐-―-]{3,200}\s*$/

const ORIGINAL = [
  "(?:original|reply|replied) (?:message|appointment|e-?mail)",
  "(?:ursprüngliche|originale?)[ -]?(?:nachricht|e-?mail|mail)",
  "message (?:d['’]origine|original)",
  "mensaje original",
  "messaggio originale",
  "mensagem original",
  "oorspronkelijk bericht",
  "ursprungligt meddelande",
  "(?:original|oprindelig|opprinnelig) (?:besked|meddelelse|melding)",
  "wiadomość oryginalna",
  "původní (?:zpráva|e-?mail)",
  "eredeti üzenet",
  "mesaj original",
  "alkuperäinen viesti",
  "исходное сообщение",
  "оригинальное сообщение",
  "orijinal (?:ileti|mesaj)",
  "原始(?:邮件|郵件|信件)",
  "(?:回复的)?原邮件",
  "(?:元の|オリジナル)メッセージ",
  "원본 메일",
].join("|")

/** What is forwarded is meant to be read: from here on everything stays. */
const FORWARDED =
  /^\s{0,3}(?:begin forwarded message:|anfang der weitergeleiteten nachricht:|[-=]{2,40}\s*(?:forwarded message|(?:weitergeleitete|anfang der weitergeleiteten) nachricht|message transf[ée]r[ée]|mensaje reenviado|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|vidarebefordrat meddelande|пересылаемое сообщение|转发的邮件|转发邮件信息)\s*[-=]{2,40})/iu

const SEPARATOR = new RegExp(
  `^\\s{0,3}(?:[-=‐-―]{2,40}\\s*(?:${ORIGINAL})\\s*[-=‐-―]{2,40}|\\W{0,10}(?:please )?(?:type|write|reply)(?: your reply)? above this line\\b)`,
  "iu",
)

/** The fields of the header that Outlook puts over the older message, in its languages. */
const FIELDS: RegExp[] = [
  /^(?:from|von|de|da|van|fra|från|od|от|lähettäjä|kimden|gönderen|发件人|从|寄件者|差出人|보낸 사람)$/iu,
  /^(?:sent|date|gesendet|datum|envoyé(?: le)?|date d['’]envoi|enviad[oa](?: el| em)?|fecha|data|inviato(?: il)?|verzonden(?: op)?|sendt|dato|skickat|wysłan[oe]|отправлено|дата|odesláno|lähetetty|gönderildi|tarih|发送时间|日期|寄件日期|送信日時|日付|보낸 날짜)$/iu,
  /^(?:to|an|à|a|para|aan|til|till|do|кому|komu|vastaanottaja|kime|kimlere|收件人|至|收件者|宛先|받는 사람)$/iu,
  /^(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|emne|ämne|temat|тема|předmět|aihe|konu|主题|主旨|件名|제목)$/iu,
]

const LABELLED = /^[\s*]{0,6}([\p{L}'’ ]{1,20}?)\s?\*?\s?[:：]/u
const MOST_HEADER_LINES = 8

/**
 * A field of the sender, and two more kinds of fields within the next lines. Behind a rule any field may be the
 * first; without one also, where an empty line is above and all four kinds follow.
 */
function isHeader(lines: string[], at: number, has_rule = false): boolean {
  const first = kindOf(lines[at])
  if (first === -1) return false
  const kinds = new Set<number>()
  for (const line of lines.slice(at, at + MOST_HEADER_LINES)) kinds.add(kindOf(line))
  kinds.delete(-1)
  const is_marked = has_rule || first === 0
  return kinds.size >= (is_marked ? 3 : 4) && (is_marked || !lines[at - 1]?.trim())
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
  "(?:hat )?(?:folgendes )?geschrieben",
  "geschreven",
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
  "の(?:メール|メッセージ)",
  "menulis",
  "đã viết",
].join("|")

const MAILBOX = "\\s?[^\\s<>]{1,100}@[^\\s<>]{1,200}"

/** It names a time and a writer, and ends in a colon: `On 22 Nov 2026, at 10:14, Ann <ann@b.test> wrote:` */
const INTRODUCTIONS = [
  new RegExp(`(?:${WROTE})\\s{0,2}[:：]$`, "iu"),
  /\s(?:schrieb|schreef|skrev|napisał(?:\(a\))?|escreveu|írta|heeft|przez)\s.{1,200}[:：]$/iu,
  new RegExp(`<${MAILBOX}>\\)?\\s?[:：]$`, "u"),
  new RegExp(`\\(${MAILBOX}\\)\\s?[:：]$`, "u"),
]

const DATED =
  /\d{1,2}[:.h]\d{2}|\b(?:19|20)\d{2}\b|(?:19|20)\d{2}[年년]|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}/u

const BEGINS =
  /^\s{0,3}(?:on|am|le|el|il|em|op|den|w|dne|ne|po|út|st|čt|pá|so|su|ma|ti|ke|to|pe|la|în|στις|вс|пн|вт|ср|чт|пт|сб|在|于|\d)[\s,.]/iu

/** In front of lines that are marked as quoted, the name of the writer is enough, in any language. */
const NAMES_WRITER = new RegExp(`[<(]${MAILBOX}[>)]|(?:${WROTE})\\s{0,2}[:：]$`, "iu")

/** How many lines from `at` on introduce a quotation; 0 when they do not. */
function introductionAt(lines: string[], at: number): number {
  const first = lines[at] ?? ""
  const head = first.slice(0, 200)
  const begins =
    DATED.test(head) || BEGINS.test(first.slice(0, 20)) || /<(?:$|[^\s<>]+@)/.test(head)
  let joined = ""
  for (let count = 1; count <= (begins ? MOST_INTRODUCTION_LINES : 1); count++) {
    const line = lines[at + count - 1]?.trim() ?? ""
    if (line === "" || joined.length + line.length > MOST_INTRODUCTION) return 0
    // An address that was wrapped has no space in it.
    const is_within = joined.lastIndexOf("<") > joined.lastIndexOf(">")
    joined = joined === "" || is_within ? joined + line : `${joined} ${line}`
    const said = joined.replace(/^-{2,12} (.+) -{2,12}$/, "$1:")
    if (!/[:：]$/.test(said)) continue
    const is_dated = DATED.test(said) && INTRODUCTIONS.some((one) => one.test(said))
    if (
      is_dated ||
      (NAMES_WRITER.test(said) && QUOTED.test(lines[nextText(lines, at + count)] ?? ""))
    )
      return count
  }
  return 0
}

const SIGNATURE = /^-- ?$/

const DEVICE = new RegExp(
  [
    "sent from (?:my|mail|mailbox|outlook|yahoo|proton|samsung|aol|gmail|nine|icloud|windows|workspace)\\b",
    "sent from (?:the|an?) .{0,40}\\b(?:app|client|device|mobile|phone|smartphone|tablet|ipad|iphone|galaxy)\\b",
    "sent (?:with|via) (?:proton|my|the|outlook|mail|superhuman|spark|tutanota|tuta|fairemail|k-9)",
    "get (?:outlook|bluemail|typeapp) for",
    "yahoo mail: ",
    ".{0,40}\\boutlook\\b.{0,30}[<(]\\s?https?://aka\\.ms/",
    "(?:diese nachricht wurde )?von mein(?:em|er) .{1,60} gesendet",
    "gesendet (?:von|mit|aus) ",
    "holen sie sich outlook|outlook für (?:ios|android)",
    "envoyé (?:de|depuis|avec|à partir de) ",
    "télécharger outlook|obtene[zr] outlook|obter o outlook",
    "enviado (?:desde|do|de|com|con|a partir|usando) ",
    "inviato (?:da|dal|con) ",
    "ver(?:zonden|stuurd) (?:vanaf|met|van|via) ",
    "skickat (?:från|med)|sendt (?:fra|med)|lähetetty ",
    "wysłan[eoa] (?:z|za pomocą) ",
    "odesláno z",
    "отправлено (?:из|с|от) ",
    ".{1,30}から送信(?:されました)?[。.]?$",
    "发自我的|發自我的|(?:从|使用|從).{1,20}(?:发送|傳送)",
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
  if (device === -1) return body
  return body.slice(0, /^[—–_-]{1,3}$/.test(body[device - 1]?.trim() ?? "") ? device - 1 : device)
}
