/** What a server said when it refused, live or in a report. */
interface Refusal {
  code: number
  /** RFC 3463. */
  enhanced: string | null
  /** With the codes in front. */
  text: string
}

/**
 * Where in the dialogue it refused: before any address was named, at MAIL, at RCPT, at DATA, or when it
 * had the message.
 */
export type RefusalStage = "connection" | "sender" | "recipient" | "data" | "message"

/** The words with which mail servers quote it: Postfix, Exim, qmail, Sendmail, GMX. */
const STAGES: [RefusalStage, RegExp][] = [
  [
    "connection",
    /\bafter (?:initial connection|connect|ehlo|helo|starttls)\b|refused to talk to me|\bin reply to (?:ehlo|helo|starttls|auth)\b|\b(?:in|the|initial|server|but) greeting\b|\behlo handshake|my name was rejected/i,
  ],
  [
    "sender",
    /\b(?:in reply to|after|after pipelined|for) mail from\b|sender was rejected|>>> mail from\b[^>]{0,1000}?<<< 5\d\d/i,
  ],
  ["recipient", /\b(?:in reply to|after|after pipelined|for) rcpt\b|does not like recipient/i],
  [
    "message",
    /\b(?:in reply to|after|after pipelined) end of data\b|\b(?:after|for) text command|failed after i sent the message/i,
  ],
  ["data", /\b(?:in reply to|after|after pipelined|failed on) data\b/i],
]

/** The stage that the words of a report name. */
export const stageIn = (words: string): RefusalStage | null =>
  STAGES.find(([, pattern]) => pattern.test(words))?.[0] ?? null

/**
 * The `bounce_subtype` of the contract. The stage decides first: before RCPT and at DATA no refusal is
 * about a recipient, in any words. One of the whole message is, where it names the recipient.
 */
export function subtypeOf(refusal: Refusal, stage: RefusalStage | null): string {
  if (stage === "connection") return "InfrastructureRejected"
  const kind = meantBy(refusal)
  if (stage === null || stage === "recipient" || blameOf(kind) !== "recipient") return kind
  return stage === "message" && kind !== "General" ? kind : "PolicyRejected"
}

/** RFC 7372 and 8616: what is missing is ours (DKIM, SPF, reverse DNS), or there was too much of it. */
const OURS = /^5\.7\.(?:2\d|5\d\d|6\d\d|7\d\d)$/

/** RFC 3463: codes that name the recipient's address. */
const OF_ADDRESS = /^5\.1\.(?:[12346]|10)$/
const OF_SENDER_ADDRESS = /^5\.1\.[78]$/
const OF_POLICY = /(?<![\d.])5\.7\.\d/
const MAILBOX_FULL = /(?<![\d.])[45]\.2\.2(?![\d.]*\d)/

/** RFC 3463: mail system, network and routing, protocol. None of them is the address's. */
const BETWEEN_SERVERS = /^5\.[345]\./

/**
 * RFC 5321, 4.2.1 and RFC 7504: the server did not understand us, or takes no mail at all. A reply
 * about an address has other codes.
 */
const OF_PROTOCOL = new Set([500, 501, 502, 503, 504, 521])

/**
 * Words and codes: those that speak of us, the sender or the moment outweigh those that name the
 * recipient, because a suppressed address is lost to its owner. What names nothing is `General`.
 */
function meantBy({ code, enhanced: given, text }: Refusal): string {
  const words = wordsOf(text)
  const exact = given?.replace(/^4/, "5") ?? "" // some say 552 4.2.2: the reply's own code counts
  const enhanced = exact === "5.0.0" ? "" : exact
  const [, subject = ""] = enhanced.split(".")
  const is_named = NAMES_RECIPIENT.test(words)
  if (/attachment|file type/i.test(words) && (subject === "7" || subject === "6" || code === 552)) {
    return "AttachmentRejected"
  }
  if (code === 552 && TOO_LARGE.test(words)) return "MessageTooLarge"
  if (isSendingLimit({ code, text }) || TOO_MUCH.test(words)) return "InfrastructureRejected"
  if (OURS.test(enhanced) || (LISTED.test(words) && !is_named)) return "InfrastructureRejected"
  if (OF_SENDER.test(words) || OF_SENDER_ADDRESS.test(enhanced)) return "PolicyRejected"
  if (subject === "7") return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  if (subject === "6") return "ContentRejected"
  if (enhanced === "5.2.3" || enhanced === "5.3.4") return "MessageTooLarge"
  if (enhanced === "5.2.2" || MAILBOX_FULL.test(words) || FULL.test(words)) return "MailboxFull"
  if (is_named) return "NoEmail"
  const is_of_us = OF_HOST.test(words) || OF_POLICY.test(text)
  if (OF_ADDRESS.test(enhanced) && !is_of_us) return "NoEmail"
  return unnamed(code, enhanced, words)
}

/** Neither the code nor a plain word names a recipient. */
function unnamed(code: number, enhanced: string, words: string): string {
  if (OF_PROTOCOL.has(code) || OF_HOST.test(words) || TROUBLE.test(words)) {
    return "InfrastructureRejected"
  }
  const is_policy = POLICY.test(words) || OF_POLICY.test(words)
  // Large hosts say "5.4.1 Recipient address rejected: Access denied" of addresses that do not exist.
  if (REJECTS_ADDRESS.test(words) && !(is_policy && !ACCESS_DENIED.test(words))) return "NoEmail"
  if (BETWEEN_SERVERS.test(enhanced)) return "InfrastructureRejected"
  if (is_policy) return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  if (SPAM.test(words)) return "ContentRejected"
  if (code === 552) return "MailboxFull"
  return FAILED.test(words) ? "InfrastructureRejected" : "General"
}

/** Without the codes in front, and without the words that addresses are made of: anybody chooses their own. */
const wordsOf = (text: string) =>
  text.replace(/^\d+[ -](?:\d\.\d+\.\d+ )?/, "").replace(ADDRESS, "a@b")

const ADDRESS = /[^\s<>()[\]"':;,=@]{1,64}@[^\s<>()[\]"':;,=@]{1,253}/g

/** The words with which a server speaks about us rather than about the message. */
const BLAMES_US =
  /\b(?:ips?|host|client|server|network|mta|unauthenticated|banned|ptr|r(?:everse )?dns|helo|ehlo)\b|\d+\.\d+\.\d+\.\d+/i

/** Words that speak about us without doubt, whatever other words the reply has. */
const LISTED =
  /\b(?:block[- ]?list(?:ed)?|black[- ]?list(?:ed)?|deny[- ]?list(?:ed)?|[rd]n?s?bl|spamhaus|spamcop|barracuda|sorbs|uceprotect|abusix|senderscore|reputation|spf|dkim|dmarc)\b/i

/** The host that connects, its name and its place in the network. */
const OF_HOST =
  /\b(?:invalid|bad|banned|blocked|suspected|your|sending|connecting|client|source|dynamic) (?:\w+ )?(?:ips?|host(?:name)?|server|mta|network)\b|\bip(?:=| (?:address )?(?:\S+ )?(?:is |was |has been )?(?:block|reject|bann|list|refus|den|not |frequency))|\b(?:helo|ehlo|ptr|rdns|reverse dns|fqdn)\b|\bconnections? (?:\w+ ){0,3}(?:not|refused|rejected|denied|blocked|limit)|\bnot accept(?:ing)? (?:connections|mail from)|\b(?:e?-?mails?|messages?|traffic) from \[?\d+\.\d+\.\d+\.\d/i

/** Of the author, though many servers say it with the code of a recipient (`550 5.1.0`). */
const AUTHOR =
  "(?:sender(?:'s)?|originator|re(?:turn|verse)[- ]path|return address|envelope from|from:? (?:address(?! book)|domain)|(?:sender|sending|your) (?:e-?mail )?(?:address|account|mailbox|user)(?= (?:is|was|has|does|not)\\b))"
const OF_SENDER = new RegExp(
  [
    `\\b${AUTHOR}\\b.{0,60}?\\b(?:reject|refus|deni|block|suspend|invalid|unknown|unverif|fail|not?\\b|bad\\b|unrout|clos|deactivat|delet|does|cannot|illegal)`,
    "\\b(?:unroute?able|reject\\w*|refused|invalid|unknown|unverified|bad|denied|blocked|illegal|null) (?:\\w+ ){0,3}sender\\b",
    "\\bdomain of sender|\\bsender'?s? domain|\\bfrom: domain|\\bfrom your (?:\\w+ )?domain|\\bvalid from\\b|\\bdns mx\\b|\\bbadmailfrom",
  ].join("|"),
  "i",
)

const TOO_LARGE = /size|large|\bbig\b|length|\btoo long\b/i

const FULL =
  /\b(?:mailbox|inbox|mail ?folder|folder|quota|storage|mail ?dir)\b.{0,60}\b(?:full|exceed\w*|over)\b|\bover.?quota|\bfull mailbox|quotaexceeded|exceeds allowed size|exceeded storage/i

const WHO =
  "(?:user(?:id)?|recipient|receiver|person|mailbox|account|addressee|alias|e-?mail address)"
const ELSEWHERE =
  "(?:utilisateur|compte|destinataire|benutzer|empfänger|usu[aá]rio|buzón|cuenta|utente)"
const NAMES_RECIPIENT = new RegExp(
  [
    `\\bunknown (?:or illegal )?(?:e-?mail |local )?(?:${WHO}|local[- ]?part|address(?! error))`,
    "\\billegal alias|\\baddress (?:is )?unknown",
    "\\bbad (?:recipient|mailbox|destination)\\b",
    `\\b${WHO}\\b(?: address)?(?: <?\\S+@\\S+)? (?:is |was |are )?(?:unknown|invalid|not (?:found|known|listed|local|here|recogni[sz]ed|registered|exist))`,
    `\\b${WHO}\\b(?: (?!temporar)\\w+){0,7} (?:(?:not|cannot be) (?:here|found)|closed|discontinued|deactivated|deleted)\\b`,
    `\\b(?:not (?:found|listed|recogni[sz]ed) in|not our (?:customer|user))\\b`,
    `\\bno (?:mailbox|such (?:\\w+ ){0,2}(?:${WHO}|address|person|name|local))\\b`,
    `\\bno (?:valid )?${WHO} (?:here|(?:by|of|with) that name)\\b|\\bnon-?existent ${WHO}`,
    `(?:\\b${WHO}\\b|\\baddress|@\\S+).{0,60}\\b(?:does(?: not|n['’]t) exist|no longer (?:exists|valid|in use|active|on|works|accepts))`,
    "\\b(?:does(?: not|n['’]t) have an?|has no) .{0,60}(?:account|mailbox)\\b|\\bhas no account\\b",
    `\\binvalid (?:\\w+ ){0,2}${WHO}`,
    `\\bnot an? (?:\\w+ ){0,2}${WHO}\\b`,
    `recip(?:ient)?notfound|${ELSEWHERE}\\b.{0,20}\\b(?:inconnu|invalide|unbekannt|desconocid|desconhecid|inexist|sconosciut|no existe|não existe)`,
    `\\bunbekannter? ${ELSEWHERE}`,
  ].join("|"),
  "i",
)

/** An address that is refused and not named as missing. Some say the same of the author and of policies. */
const REJECTS_ADDRESS =
  /\b(?:recipient|mailbox|user) (?:is )?unavailable|\baddress rejected|\brecipient rejected/i
const ACCESS_DENIED = /\baccess denied\b/i

const SPAM =
  /spam|virus|malware|content|\b(?:message|e?-?mail) (?:was |is |has been )?(?:rejected|refused|not accepted)/i
const POLICY =
  /polic(?:y|ies)|denied|not (?:allowed|permitted|authori[sz]ed)|prohibit|block|relay|restrict|forbidden|refus|unsolicited|suspicious|authenticat|will not accept|\bofr[_\d]/i

/** Too much came from us or to the recipient. The next message may be welcome. */
const TOO_MUCH =
  /\btoo many (?!(?:messages|e?-?mails) in\b)|\btoo much mail\b|\bat a rate\b|\btoo (?:quickly|fast)\b|\brate[- ]?limit|\bfrequency limit|\b(?:daily|hourly) limit|\blimit for (?:the )?number of messages|throttl/i

/** The server, the way to it, or this moment. */
const TROUBLE =
  /\btry(?:ing)? (?:it )?(?:again|later)|\bretry|\btemporar|\bproblem occurred|\bprotocol (?:violation|error)|\b(?:internal|system|local|mailer|software|configuration|write) (?:\w+ )?error|\berror while|\bsystem busy|\bresources\b|\bout of (?:memory|disk)|\bdisk full|\bno space left|\bhop count|\bloop\b|\bname service|\blookup fail|\bhost (?:not found|unknown)|\btime[d -]{0,2}out|\b(?:message|envelope|delivery)\W(?:\w+\W){0,3}expired|\bgiving up|\bunable to connect|\brequests? to connect|\bconnection (?:reset|lost|closed|dropped|failed)|\bsocket error|\bqueue too long|\bnot deliver for the last|\bservice (?:is |currently |temporarily )*(?:unavailable|not available|refus)|\bno smtp service|gr[ae]y-?list/i

/** Names nothing at all. */
const FAILED = /\btransaction failed|\brequested action aborted/i

/** How much we may send, said so that it cannot be meant of a mailbox or of one message. */
const SENDING_LIMIT =
  /\b(?:send|sending|submission|outbound|outgoing|relay|relaying)(?: (?!over|is)\w+){0,2} (?:quota|limits?|allowance)\b|\b(?:quota|limits?|allowance) (?:for|on|of) (?:sending|submission|outbound|outgoing|relaying)\b/i

/** The same, where the server says nothing of a mailbox or a receiver. */
const LIMIT_IN_TIME =
  /\b(?:daily|hourly|monthly)\b.*\b(?:quota|limits?)\b|\b(?:e?-?mails|messages) per (?:hour|day|month)\b|\brate limit|\bcredits? (?:limit )?exceeded/i
const OF_RECEIVER = /\b(?:recipient|mailbox|inbox|storage|receiv\w*)\b/i

/** Whether the server says that we have sent as much as it takes from us. */
export function isSendingLimit({ code, text }: Pick<Refusal, "code" | "text">): boolean {
  const words = wordsOf(text)
  if (code < 400 || TOO_LARGE.test(words)) return false
  return SENDING_LIMIT.test(words) || (LIMIT_IN_TIME.test(words) && !OF_RECEIVER.test(words))
}

/** Of a relay it says that we may not use it, however politely it is named a policy. */
const RELAYS_NOT =
  /\brelay(?:ing)? (?:access )?(?:is |was )?(?:denied|not (?:permitted|allowed))|\b(?:unable|not (?:permitted|allowed|authori[sz]ed)) to relay\b/i

export const isRelayDenied = ({ text }: Pick<Refusal, "text">): boolean =>
  RELAYS_NOT.test(wordsOf(text))

/** What a permanent refusal is about. Only the first says anything about the address. */
type BounceBlame = "recipient" | "content" | "infrastructure"

const BLAMES: Record<string, BounceBlame> = {
  NoEmail: "recipient",
  MailboxFull: "recipient",
  General: "recipient",
  Suppressed: "recipient",
  MessageTooLarge: "content",
  ContentRejected: "content",
  AttachmentRejected: "content",
  PolicyRejected: "infrastructure",
  InfrastructureRejected: "infrastructure",
}

/** Of a recipient: one such bounce is enough to know that the address gets no mail. */
const LASTING = new Set(["NoEmail", "MailboxFull", "Suppressed"])

export const isLasting = (bounce_subtype: string): boolean => LASTING.has(bounce_subtype)

/** By the `bounce_subtype` of the contract. */
export const blameOf = (bounce_subtype: string): BounceBlame =>
  BLAMES[bounce_subtype] ?? "recipient"
