import { type DsnAction, type DsnRecipient, statusIn } from "./dsn-recipient"
import { stageIn } from "./refusal"
import { addressIn, onOneLine } from "./report-fields"
import { firstOf, type HeaderLists, headersIn, type SeenMail } from "./seen-mail"

/** What a bounce without machine-readable part says. */
interface TextBounce {
  recipients: DsnRecipient[]
  reporting_mta: string | null
  /** The header of the message, from behind the words; empty when none follows. */
  returned: HeaderLists
}

/** Bounces that only people were meant to read are short; the message they return follows. */
const MOST_TEXT = 64 * 1024
const MOST_LINES = 1_000
const MOST_LINE = 1_000
const MOST_DIAGNOSTIC_LINES = 40
const MOST_RECIPIENTS = 100
const MOST_SENTENCES = 40

/**
 * The bounces of mail servers that know no RFC 3464, or do not use it: qmail (QSBMF) and its heirs,
 * older Exim, Sendmail, Exchange and Gmail, IMail, GroupWise and others of their kind. They differ in
 * words and not in shape: a sentence, an address on a line of its own, the reason, the message.
 */
export function dsnFromText(mail: SeenMail): TextBounce | undefined {
  if (!isFromServer(mail)) return undefined
  const text = (mail.text ?? "").slice(0, MOST_TEXT)
  const { words, returned } = cutAtOriginal(text)
  const action = actionIn(`${firstOf(mail.headers, "subject")}\n${words}`, mail)
  if (!action) return undefined
  const lines = words.split(/\r?\n/, MOST_LINES).map((line) => line.slice(0, MOST_LINE))
  const readings = [
    () => recipientsIn(lines, action, recipientLine),
    () => recipientsInHeader(mail, lines, action),
    () => recipientsIn(lines.slice(0, MOST_SENTENCES), action, recipientInSentence),
  ]
  const recipients = readings.reduce<DsnRecipient[]>(
    (found, reading) => (found.length > 0 ? found : reading()),
    [],
  )
  if (recipients.length === 0) return undefined
  return { recipients, reporting_mta: REPORTING.exec(words)?.[1] ?? null, returned }
}

const REPORTING =
  /\b(?:program|system|server|from|running at|by)(?: at)?(?: host)? ((?:[a-z0-9-]{1,63}\.){1,9}[a-z]{2,20})\b/i

const DAEMON =
  /mailer-?daemon|^\W*(?:postmaster|mail-?daemon|mdaemon|mail delivery|mail administrator|system administrator)|<?postmaster@|microsoft exchange/i

/** Whether a mail server wrote it: no sender to answer, or one that is nobody's. */
export function isFromServer(mail: SeenMail): boolean {
  const from = firstOf(mail.headers, "from").slice(0, MOST_LINE)
  // A forwarder may have put its own address in place of the null sender.
  if (/mailer-?daemon/i.test(from)) return true
  const is_answer = /auto-(?:replied|generated)/i.test(firstOf(mail.headers, "auto-submitted"))
  return mail.envelope_from === "" && (DAEMON.test(from) || !is_answer)
}

/** The lines behind which the servers put the message that they return. */
const ORIGINAL =
  /^[ \t]*(?:\|?-{2,}[ \t]*(?:below this line|(?:this is|here is|the following is) a copy|original|unsent|returned|message (?:header|text|body)|the (?:header|body)|enclosed|begin|forwarded|copy of|included)|(?:below|the following) is a copy of|original message follows|the (?:header|full header|original message|message header)s? (?:of|is|follow)|message headers? follows?:?[ \t]*$|--- ?the header)[^\n]*$/im

function cutAtOriginal(text: string): { words: string; returned: HeaderLists } {
  const mark = ORIGINAL.exec(text)
  if (!mark) return { words: text, returned: headersIn("") }
  const rest = text.slice(mark.index + mark[0].length).replace(/^\r?\n/, "")
  return { words: text.slice(0, mark.index), returned: headersIn(withoutRules(rest)) }
}

/** More lines of the same kind, and empty ones, in front of the header. */
function withoutRules(text: string): string {
  let rest = text
  for (let count = 0; count < 10 && /^[ \t]*(?:-{2}[^\n]*)?\r?\n/.test(rest); count++) {
    rest = rest.slice(rest.indexOf("\n") + 1)
  }
  return rest
}

const DELAYED =
  /warning (?:message )?only|has not yet been delivered|has been delayed|is delayed|message delayed|delivery delayed|delivery status notification \(delay\)|could not send message for past|do not need to resend|will be retried|will continue to (?:try|be)|no action is required|noch nicht zugestellt|verzögert|n'a pas encore été|todavía no se ha|non è stato ancora|ещё не доставлено|еще не доставлено|задерж|暂未送达/i

const FAILED =
  /undeliver|not (?:be|been) delivered|fail(?:ed|ure) to deliver|blocked by|\bbounce\b|(?:un|not )able to deliver|wasn't able to deliver|(?:delivery|mail|message|transmission|sending)(?: \w+){0,6} (?:has )?failed|error delivering your|failed (?:permanently|recipient)|delivery (?:failure|error|has failed|problem|unsuccessful)|failure notice|returned (?:mail|to sender|message)|returning message|(?:could|can|was|were|did) ?not (?:be )?(?:deliver|sent|reach|process)|permanent (?:fatal )?error|fatal errors?|had (?:fatal|permanent)|errors? (?:has |have )?occurred (?:while|when)|bounced|recipients? (?:were|was) in error|unknown user|user unknown|exceeds allowed size|giv(?:en|ing) up|nicht (?:zugestellt|ausgeliefert|übermittelt)|unzustellbar|n'a (?:pas )?pu être|échec de|non remis|non distribuible|no (?:se )?(?:pudo|ha podido|puede) (?:ser )?entrega|no se pudo entregar|non recapita|non è stato possibile (?:recapitare|consegnare)|mancato recapito|não (?:pôde|pode) ser entregue|kon niet worden (?:bezorgd|afgeleverd)|onbestelbaar|nie (?:może|mogła) zostać dostarczon|не (?:может быть|удалось|было|была) достав|недоставлен|退信|退回|无法(?:投递|送达|发送)|配信(?:できません|不能)|配達できません|送信できません|배달하지 못|반송/i

function actionIn(words: string, mail: SeenMail): DsnAction | undefined {
  const start = words.slice(0, 8_000)
  if (DELAYED.test(start)) return "delayed"
  return FAILED.test(start) || firstOf(mail.headers, "x-failed-recipients") ? "failed" : undefined
}

/** Reasons that some servers write in front of the address, on the same line. */
const REASON_FIRST =
  /^(unknown user|user unknown|unknown recipient|invalid (?:user|recipient|final delivery user\w*)|user mailbox exceeds allowed size|mailbox (?:full|unknown|not found)|no such user|undeliverable to|delivery failed|account (?:disabled|inactive))\s*:?\s+/i

const LABEL =
  /^(?:(?:failed |final |intended )?recipient(?: address)?s?|address|failed address|e-?mail|empfänger|destinataire|destinatario|получатель|адрес|收件人|受信者)\s*[:：]\s*/i

/** An address alone on a line, with what may stand behind it: a colon, the reason, the time. */
const ALONE =
  /^(?:"[^"]{0,100}"\s*)?[<[]?((?:smtp[=:])?[^\s<>()[\]:;,"：（）。，；、]{1,64}@[^\s<>()[\]:;,"@：（）。，；、]{1,253})[>\]]?(?:\s*[([]([^()[\]]{1,300})[)\]])?\s*(?:\.?$|[:;,]+\s*(.{0,900})$|\.{3}\s*(.{0,900})$|-{1,2}\s+(.{0,900})$|on\s+\w{3},.{0,100}$)/iu

interface RecipientLine {
  at: number
  email: string
  /** What the same line says about it. */
  reason: string
}

function recipientLine(line: string, at: number): RecipientLine | undefined {
  const bare = line
    .replace(/^[\s>*•-]{1,40}/, "")
    .replace(/^"([^"\s@]{1,64}@[^"\s@]{1,253})"/, "$1")
  const first = REASON_FIRST.exec(bare)
  const start = first ? bare.slice(first[0].length) : bare.replace(LABEL, "")
  const [, found, ...reasons] = ALONE.exec(start.trim()) ?? []
  const email = found && addressIn(found.replace(/^smtp[=:]/i, ""))
  if (!email) return x400Line(bare, at)
  return { at, email, reason: reasons.find(Boolean) ?? first?.[1] ?? "" }
}

/** Exchange 5.5: `c=US;a= ;p=Org;dda:SMTP=a@b.test; on Tue, …`. */
function x400Line(line: string, at: number): RecipientLine | undefined {
  const [, email] = /\bdda:(?:rfc-822|smtp)=([^\s;]{3,320}); on /i.exec(line) ?? []
  const address = addressIn(email?.replace("(a)", "@") ?? "")
  return address === undefined ? undefined : { at, email: address, reason: "" }
}

/** The address within a sentence: `Your message to <a@b.test> was undeliverable`, `Rcpt=[a@b.test]`. */
const IN_SENTENCE =
  /\b(?:deliver(?:ed|y)?|undeliverable|message|e?-?mail|recipient|rcpt|address|sent|to)\b[^@]{0,60}?[\s<[('"‘“=:]([^\s<>()[\]:;,"'=‘“]{1,64}@[^\s<>()[\]:;,"'=’”@]{1,253})/iu

const OF_NO_RECIPIENT =
  /^\s*(?:from|reply-to|sender|subject|message-id|date)\s*:|(?:postmaster|mailer-daemon|abuse|support|help\w*)@/i

function recipientInSentence(line: string, at: number): RecipientLine | undefined {
  const found = OF_NO_RECIPIENT.test(line) ? undefined : IN_SENTENCE.exec(line)?.[1]
  const email = found && addressIn(found)
  return email ? { at, email, reason: "" } : undefined
}

type ReadLine = (line: string, at: number) => RecipientLine | undefined

function recipientsIn(lines: string[], action: DsnAction, readLine: ReadLine): DsnRecipient[] {
  const found: RecipientLine[] = []
  const known = new Set<string>()
  for (const [at, line] of lines.entries()) {
    const one = line.includes("@") ? readLine(line, at) : undefined
    if (!one || known.has(one.email.toLowerCase()) || found.length === MOST_RECIPIENTS) continue
    known.add(one.email.toLowerCase())
    found.push(one)
  }
  return found.map((one, index) => {
    const end = Math.min(found[index + 1]?.at ?? lines.length, one.at + MOST_DIAGNOSTIC_LINES)
    const own = lines.slice(one.at + 1, end)
    const diagnostic =
      replyIn([one.reason]) ??
      replyNaming(one.email, lines) ??
      replyIn(own) ??
      replyIn(own, BARE_REPLY) ??
      paragraph(one.reason, own) ??
      replyIn(lines)
    const stage = stageIn(onOneLine(lines.slice(one.at, end).join(" ")))
    return { ...recipient(one.email, action, diagnostic, lines), stage }
  })
}

function recipientsInHeader(mail: SeenMail, lines: string[], action: DsnAction): DsnRecipient[] {
  const field = firstOf(mail.headers, "x-failed-recipients").slice(0, 10_000)
  const emails = field.split(",", MOST_RECIPIENTS).map(addressIn)
  return emails
    .filter((email) => email !== undefined)
    .map((email) => recipient(email, action, replyNaming(email, lines) ?? replyIn(lines), lines))
}

function recipient(
  email: string,
  action: DsnAction,
  diagnostic: string | null,
  lines: string[],
): DsnRecipient {
  const remote_mta = lines.map((line) => REMOTE.exec(line)?.[1]).find(Boolean) ?? null
  const status = statusIn(diagnostic ?? "")
  const stage = stageIn(onOneLine(lines.join(" ")))
  return { email, final_email: null, action, status, diagnostic, remote_mta, stage }
}

const REMOTE =
  /\b(?:host|talking to|connect to|domain \S{1,253} by) ((?:[a-z0-9-]{1,63}\.){1,9}[a-z]{2,20})\b/i

/** A reply of a server within a line: at its beginning, or behind what introduces it. */
const REPLY = /(?:^\s*|[:>"'([=]\s*|\bsaid\s|\berror\s|\bwas\s)([45]\d\d(?:[ -]|#|: ?)\s?\S.*)$/

const MOST_REPLY_LINES = 6

/** GMX and 1&1 leave out the three digits. */
const BARE_REPLY = /^\s*([45]\.\d{1,3}\.\d{1,3}\s+\S.*)$/

/** The reply that the lines quote, with its further lines, on one line. */
function replyIn(lines: string[], reply = REPLY): string | null {
  const at = lines.findIndex((line) => reply.test(line))
  if (at === -1) return null
  const first = reply.exec(lines[at] ?? "")?.[1] ?? ""
  const more = lines.slice(at + 1, at + MOST_REPLY_LINES)
  const end = more.findIndex((line) => /^\s*$|^(?:<<<|>>>|\.\.\. |giving up)/i.test(line))
  return onOneLine([first, ...(end === -1 ? more : more.slice(0, end))].join(" ")).slice(0, 1_000)
}

/** In a transcript below all addresses: the reply that names this one. */
function replyNaming(email: string, lines: string[]): string | null {
  const at = lines.findIndex((line) => line.includes(email) && REPLY.test(line))
  return at === -1 ? null : replyIn(lines.slice(at))
}

const MOST_REASON_LINES = 4

/** A short line that ends in a colon leads to the reason: `SMTP error after RCPT command:`. */
const LEADS = /^.{0,60}:\s*$/

function paragraph(reason: string, lines: string[]): string | null {
  const start = lines.findIndex((line) => line.trim() !== "" && !LEADS.test(line))
  const rest = start === -1 ? [] : lines.slice(start, start + MOST_REASON_LINES)
  const end = rest.findIndex((line) => line.trim() === "")
  const words = onOneLine([reason, ...(end === -1 ? rest : rest.slice(0, end))].join(" "))
  return words === "" ? null : words.slice(0, 1_000).toWellFormed()
}
