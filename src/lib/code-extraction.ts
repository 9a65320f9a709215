import { textFromHtml } from "./text-from-html"

export interface ReadableMail {
  subject: string | null
  text: string | null
  html: string | null
}

/** Codes stand near the beginning of a mail. */
const MOST_CHARACTERS = 128 * 1024
const MOST_HTML = 512 * 1024
const MOST_CANDIDATES = 500

/**
 * The one-time code of a mail: 4 to 8 digits or letters near the words for it. Separators are left out
 * (`K7PX-9QTM` is `K7PX9QTM`). Undefined when nothing looks like one. Never throws.
 */
export function extractCode(mail: ReadableMail): { code: string } | undefined {
  const subject = cleaned(mail.subject ?? "")
  const body = cleaned((mail.text ?? "").slice(0, MOST_CHARACTERS))
  const in_html = body.trim() === "" ? cleaned(bodyOf(mail.html)) : body
  const is_promised = subject.search(CODE_WORD) !== -1
  const found = [
    ...candidatesIn(subject, false).map((one) => ({ ...one, score: one.score + IN_SUBJECT })),
    ...candidatesIn(in_html, is_promised),
  ]
  const best = found.toSorted((a, b) => b.score - a.score)[0]
  return best && best.score >= LEAST_SCORE ? { code: best.code } : undefined
}

const bodyOf = (html: string | null) =>
  textFromHtml((html ?? "").slice(0, MOST_HTML)).slice(0, MOST_CHARACTERS)

/** What numbers stand in without being codes becomes blank; positions stay close enough. */
function cleaned(text: string): string {
  return text
    .slice(0, MOST_CHARACTERS)
    .replace(/[\u200b-\u200d\u2060\ufeff\u00ad]/g, "")
    .replace(/[\u00a0\u2002-\u200a\u202f]/g, " ")
    .replace(/[０-９]/g, (digit) => digit.normalize("NFKC"))
    .replace(/(?<=[A-Z0-9] ?)[\u00b7\u2010-\u2015\u2212](?= ?[A-Z0-9])/g, "-")
    .replace(/(?<=\d) - (?=\d)/g, " ")
    .replace(/(?<!\w)_([A-Z0-9-]{4,9})_(?!\w)/g, "$1")
    .replace(/(?<=[:：]\s?)#(?=\d{4,8}\b)/g, "")
    .replace(/https?:\/\/[^\s<>"']{1,2000}/gi, " ")
    .replace(/[\w.+-]{1,64}@[\w.-]{1,253}/g, " ")
    .replace(/#[0-9a-f]{3,8}\b(?!\s*(?:is|ist))/gi, " ")
    .replace(/\b(?:19|20)\d{2}[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?!\d)/g, " ")
    .replace(DAY, " ")
    .replace(/\b\d{1,2}:\d{2}(?::\d{2})?\b/g, " ")
    .replace(/\b\d{1,3}(?:\.\d{1,3}){3}\b/g, " ")
}

const DAY =
  /\b(?:0?[1-9]|[12]\d|3[01])[-/.](?:0?[1-9]|[12]\d|3[01])[-/.](?:\d{2}|(?:19|20)\d{2})\b/g

interface CodeCandidate {
  code: string
  score: number
}

const IN_SUBJECT = 2
const LEAST_SCORE = 7

/** Digits behind a prefix, digits and signs one by one, digits in groups and alone, signs in groups and alone. */
const TOKEN =
  /(?<![\p{L}\p{N}+#$€£¥.,_/-])(?:(?:G|FB|OTP)-(\d{4,8})|(\d(?:[ -]\d){3,7})|(\d{3,4}[ -]\d{3,4}|\d{3}\.\d{3}|\d{2}[ -]\d{2}[ -]\d{2})|(\d{4,8})|([A-Z0-9]{3,4}-[A-Z0-9]{3,4}|(?=[A-Z]*\d)[A-Z0-9]{3,4} (?=[A-Z]*\d)[A-Z0-9]{3,4}|[A-Z0-9](?: [A-Z0-9]){3,7})|([A-Za-z0-9]{4,8}))(?![\p{L}\p{N}_/]|[-.,]\d|-\p{L}|\.\p{L}| ?[€£¥$%])/gu

const BEFORE = 90
const AFTER = 90

function candidatesIn(text: string, is_promised: boolean): CodeCandidate[] {
  const found: CodeCandidate[] = []
  for (const match of text.matchAll(TOKEN)) {
    const [all, prefixed, spaced, grouped, digits, groups, mixed] = match
    if (mixed !== undefined && !mayBeCode(mixed)) continue
    const numbers = prefixed ?? spaced ?? grouped ?? digits
    const code = (numbers ?? groups ?? mixed ?? "").replace(/[ .-]/g, "")
    const at = match.index
    const context: CodeContext = {
      code,
      is_number: numbers !== undefined,
      is_doubtful: / |\d\.\d/.test(numbers === undefined ? all : (grouped ?? "").replace(" ", "")),
      is_grouped: groups?.includes("-") ?? false,
      is_promised,
      before: text.slice(Math.max(0, at - BEFORE), at),
      after: text.slice(at + all.length, at + all.length + AFTER),
    }
    found.push({ code, score: scoreOf(context) })
    if (found.length === MOST_CANDIDATES) break
  }
  return found
}

/** Letters alone are words; capitals among them, or digits, make a code of them. */
const mayBeCode = (word: string): boolean =>
  (/\d/.test(word) && /[A-Za-z]/.test(word)) || /^[A-Z]{4,8}$/.test(word)

interface CodeContext {
  code: string
  is_number: boolean
  is_grouped: boolean
  /** Its form is also that of words, postcodes and amounts: it counts only where it is introduced. */
  is_doubtful: boolean
  /** The subject speaks of a code. */
  is_promised: boolean
  before: string
  after: string
}

/** What is called a code, and is none to sign in with. */
const OTHER_CODES =
  "promo|promotion|discount|coupon|voucher|error|postal|zip|country|area|source|qr|bar|colou?r|status|reference|sort|bank|dial(?:l?ing)?|dress|tariff|tax"
const OTHER_CODE = new RegExp(`\\b(?:${OTHER_CODES})[- ]code\\b[^.!?\n]{0,20}$`, "i")

const CODE_WORDS =
  /\b(?:(?:pass|security|verification|confirmation|access|login|log-in|sign-?in|auth\w*|activation|one-time|single-use|2fa|mfa|otp)[ -]?(?:code|key|pin|number|password)|codes?|otp|passcode|one-time (?:password|pin)|pin|(?:bestätigungs|sicherheits|einmal|verifizierungs|zugangs|anmelde|prüf|aktivierungs)?(?:code|passwort|kennwort)|tan|código|codigo|codice|kode?n?|kod[ue]?|koodi|kód|clave|contraseña temporal|mot de passe|doğrulama|şifre|parool|κωδικός)(?![\p{L}])|код|пароль|验证码|驗證碼|校验码|动态码|認証コード|確認コード|認証番号|인증 ?번호|인증 ?코드|رمز|קוד/u
const CODE_WORD = new RegExp(`(?<!\\b(?:${OTHER_CODES})[- ])${CODE_WORDS.source}`, "giu")

const OTHER_NUMBER =
  /(?:\b(?:order|invoice|receipt|reference|ref|ticket|case|request|tracking|customer|client|account|member|booking|reservation|confirmation (?:no|number)|serial|vat|tax|iban|card|ending in|ends in|suite|apt|room|floor|p\.?o\.? box|zip(?: code)?|postal code|postcode|area code|tel|phone|fax|call|mobile|since|copyright|version|build|article|item|sku|product|bestell(?:ung|nummer)?|rechnung(?:snummer)?|auftrag(?:snummer)?|kundennummer|vorgang(?:snummer)?|plz|commande|facture|pedido|factura|ordine|fattura|promo(?:tion)?(?: code)?|discount(?: code)?|coupon(?: code)?|gutschein(?:code)?|voucher(?: code)?|error(?: code)?|status(?: code)?|http)|№|©|订单号?|注文番号)[\s:.#-]*(?:(?:no|nr|number|id|is|in)[\s:.#]*)?$/iu

const UNIT_AFTER =
  /^\s?(?:minutes?|mins?|hours?|hrs?|seconds?|days?|weeks?|months?|years?|minuten|stunden|tagen?|heures|jours|minutos|horas|ore|giorni|минут|час|分|小时|時間|users?|items?|points?|people|km|kg|usd|eur|gbp|chf|euros?|dollars?|pixel|px|mb|gb|kb)(?![\p{L}])/iu

const MONTHS =
  /(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|okt|oct|nov|dec|dez)\p{L}{0,7}\.?,?\s+(?:\d{1,2}(?:st|nd|rd|th)?,?\s+)?$/iu

function scoreOf(context: CodeContext): number {
  const { code, is_number, is_grouped, before, after } = context
  if (isTrap(code, before, after)) return 0
  const alone = /(?:^|\n)[ \t*>]*$/.test(before) && /^[ \t*.]*(?:\r?\n|$)/.test(after)
  const near = Math.max(nearness(before, after), alone && context.is_promised ? 4 : 0)
  const named = NAMES_IT.test(before) || IS_NAMED.test(after)
  if (near === 0 && !named) return 0
  const introduced = near >= 4 && /[:：]\s{1,3}[*"'“„«【[(]{0,2}$/.test(before)
  const is_stated = alone || named || introduced
  if (context.is_doubtful && !is_stated) return 0
  const called = is_grouped && /code\s$/i.test(before)
  if (/^[A-Z]{4,8}$/.test(code) && !is_stated && !called) return 0
  const is_lower = !is_number && /[a-z]/.test(code)
  if (is_lower && !is_stated) return 0
  const length = is_number ? (code.length === 6 ? 3 : 1) : 0
  const year = /^(?:19|20)\d{2}$/.test(code) && !alone && !named ? -6 : 0
  const shaped = is_number || called || /\d/.test(code) ? 1 : 0
  const asked = /\b(?:enter|use|type|insert|geben sie|gib|saisissez|introduce|inserisci)\s$/i.test(
    before,
  )
  const sold = DISCOUNT.test(before) || DISCOUNT.test(after.slice(0, 30)) ? -6 : 0
  const place = alone ? 4 : introduced ? 3 : 0
  return near + sold + (asked ? 2 : 0) + place + (named ? 5 : 0) + length + year + shaped
}

/** What a shop calls a code takes a part off a price. */
const DISCOUNT =
  /\d ?% ?(?:off|discount|rabatt|de (?:remise|descuento)|di sconto)|\b(?:discount|coupon|voucher|promo|gutschein|rabatt|sale)\b/i

/** The word stands right in front: `code: 1234`, `code is 1234`, `Ihr Code lautet 1234`. */
const NAMES_IT =
  /(?:code|otp|pin|passcode|password|passwort|kennwort|tan|código|codigo|codice|kode|kod|kodu|koodi|kód|код|пароль|码|碼|コード|番号|번호|코드)(?:\s{0,3}\p{L}{1,12}){0,2}\s*(?:is|ist|lautet|est|es|è|é|är|er|on|jest|to|:|：|は|为|是|=|-|–|—)+\s*[*"'“„«【[(]?\s*$/iu

/** The word stands right behind: `1234 is your code`, `1234 ist Ihr Code`. */
const IS_NAMED =
  /^["'”“»】\])*]?\s{0,3}(?:is|as|als|comme|como|come|ist|est|es|è|é|är|er|on|jest|to|—|-|–|を|は)\s?(?:your|the|ihr|dein|votre|ton|tu|su|il tuo|la tua|o seu|seu|uw|je|din|twój|ваш|あなたの)?(?:\s?[\p{L}-]{1,20}){0,4}?\s?(?:code|otp|pin|passcode|password|passwort|código|codice|kode|kod|koodi|kód|код|пароль|コード)/iu

function isTrap(code: string, before: string, after: string): boolean {
  if (OTHER_CODE.test(before)) return true
  if (OTHER_NUMBER.test(before) && !NAMES_IT.test(before)) return true
  if (UNIT_AFTER.test(after) || MONTHS.test(before)) return true
  if (/(?:[$€£¥]|usd|eur|gbp|chf)\s?$/i.test(before)) return true
  if (/^(?:19|20)\d{6}$/.test(code) && isDay(code)) return true
  // Further digits before or behind make it a telephone number.
  return /(?:\+\d{1,3}|\(\d{1,5}\)|\d{2,5})[ ./-]{1,2}$/.test(before) || /^[ /-]\d{2,}/.test(after)
}

const isDay = (code: string) => Number(code.slice(4, 6)) <= 12 && Number(code.slice(6)) <= 31

const ENDS_SENTENCE = /[.!?]\s/

/** Characters that the end of a sentence counts for. */
const FURTHER = 20

/** From 0 to 6: how close the next word for a code stands. */
function nearness(before: string, after: string): number {
  const last = [...before.matchAll(CODE_WORD)].at(-1)
  const next = [...after.matchAll(CODE_WORD)][0]
  const between = last ? before.slice(last.index + last[0].length) : ""
  const distance = Math.min(
    last ? between.length + (ENDS_SENTENCE.test(between) ? FURTHER : 0) : Number.POSITIVE_INFINITY,
    next ? next.index + 10 : Number.POSITIVE_INFINITY,
  )
  return distance <= 12 ? 6 : distance <= 40 ? 4 : distance <= BEFORE ? 2 : 0
}
