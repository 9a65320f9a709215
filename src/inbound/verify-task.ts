import { open } from "node:fs/promises"
import { type DmarcResult, evaluateDmarc, undecided } from "./dmarc"
import { type DnsAnswer, type DnsAnswers, type DnsQuestion, keyOf } from "./dns-answers"
import { HEAD_BYTES } from "./header-rows"
import { type MailSource, type ReadMail, readInbound, wholeMail } from "./parse-inbound-task"
import { evaluateSpf, type SpfResult, type SpfSender } from "./sender-policy"
import { readHeader, type SignatureVerdicts, validateSignatures } from "./signatures"

type MailVerdict = "pass" | "fail" | "none" | "temperror"

/** The verdicts of a mail as its row has them. */
export interface VerdictWords {
  spf: MailVerdict
  dkim: MailVerdict
  dmarc: MailVerdict
  arc: MailVerdict
  /** False when SPF or DMARC failed. */
  verified: boolean
}

/** With what they rest on. */
export interface MailVerdicts extends VerdictWords {
  detail: VerdictDetail
}

interface VerdictDetail extends SignatureVerdicts {
  spf: SpfResult
  dmarc: DmarcResult & {
    /** 0 to 99. The policy is for this mail when it is below `percent`. */
    sample: number
  }
}

export interface MailToVerify {
  mail: MailSource
  /** False: its signatures are not looked at yet, and the bytes may be those of its header alone. */
  is_whole: boolean
  sender: SpfSender
  /** When it came, in milliseconds since 1970: signatures are verified as of that time. */
  now: number
  answers: DnsAnswers
}

export interface VerifiedMail {
  /** What DNS has to be asked for. Until nothing is missing, the verdicts are worth nothing. */
  missing: DnsQuestion[]
  verdicts: MailVerdicts
  /** It has signatures, which only the whole mail proves. */
  needs_whole: boolean
}

/** SPF, DKIM, DMARC and ARC, for a thread. It never waits for the network. */
export async function verifyMail(given: MailToVerify): Promise<VerifiedMail> {
  const { mail, is_whole, sender, now, answers } = given
  const header = await readHeader(await headOf(mail))
  const missing = header.keys.filter((question) => !answers[keyOf(question)])
  const spf = await evaluateSpf(sender, answers, missing)
  const needs_whole = !header.is_unsigned && !is_whole
  let found: SignatureVerdicts = header.is_unsigned ? UNSIGNED : UNREAD
  if (!header.is_unsigned && is_whole && missing.length === 0)
    found = await validateSignatures(await wholeMail(mail), new Date(now), answers, missing)
  const lookUp = async (name: string): Promise<DnsAnswer> => {
    const question = { name, type: "TXT" } as const
    const answer = answers[keyOf(question)]
    if (!answer) missing.push(question)
    return answer ?? { rows: [] } // so that it goes on, and says all that it wants to know
  }
  const dmarc = await evaluateDmarc(header.authors, { spf, dkim: found.dkim }, lookUp)
  const verdicts = verdictsOf({ spf, ...found, dmarc: { ...dmarc, sample: header.sample } })
  return { missing, verdicts, needs_whole }
}

const UNSIGNED: SignatureVerdicts = { dkim: [], arc: "none" }

/** Of signatures that nobody has looked at, in time or at all. */
const UNREAD: SignatureVerdicts = {
  dkim: [{ result: "temperror", domain: "", selector: "" }],
  arc: "temperror",
}

/** Of a mail that takes a thread too long. */
export const lateVerdicts = (domain: string): MailVerdicts =>
  verdictsOf({
    spf: { result: "temperror", domain },
    ...UNREAD,
    dmarc: { ...undecided(""), sample: 0 },
  })

function verdictsOf(detail: VerdictDetail): MailVerdicts {
  const results = detail.dkim.map(({ result }) => result)
  const first = (["pass", "temperror", "fail"] as const).find((result) => results.includes(result))
  const spf = SPF_VERDICTS[detail.spf.result]
  const dmarc = detail.dmarc.result
  const verified = spf !== "fail" && dmarc !== "fail"
  return { spf, dkim: first ?? "none", dmarc, arc: detail.arc, verified, detail }
}

/** Only a definite `-all` is a failure. The other words give no answer that one could rely on. */
const SPF_VERDICTS: Record<SpfResult["result"], MailVerdict> = {
  pass: "pass",
  fail: "fail",
  softfail: "none",
  neutral: "none",
  none: "none",
  permerror: "none",
  temperror: "temperror",
}

async function headOf(mail: MailSource): Promise<Uint8Array> {
  if (mail instanceof Uint8Array) return mail
  await using file = await open(mail.path)
  const buffer = Buffer.alloc(HEAD_BYTES)
  const { bytesRead } = await file.read(buffer, 0, HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}

export interface SmallMail extends Omit<MailToVerify, "is_whole"> {
  /** Where it was verified when it came. */
  verdicts: VerdictWords | null
  blobs_dir: string
}

export interface ReadSmallMail {
  mail: ReadMail
  verdicts: VerdictWords
}

/** What DNS has to be asked for before the mail can be verified, or the mail, or that it is a hard one. */
export type SmallMailResult = { missing: DnsQuestion[] } | ReadSmallMail | { failed: string }

/** For a thread. What goes wrong with one mail is told beside what became of the others. */
export async function readSmallMails(list: SmallMail[]): Promise<SmallMailResult[]> {
  const results: SmallMailResult[] = []
  for (const one of list)
    results.push(await readSmallMail(one).catch((error) => ({ failed: String(error) })))
  return results
}

async function readSmallMail(given: SmallMail): Promise<SmallMailResult> {
  let { verdicts } = given
  if (!verdicts) {
    const found = await verifyMail({ ...given, is_whole: true })
    if (found.missing.length > 0) return { missing: found.missing }
    const { detail: _, ...words } = found.verdicts
    verdicts = words
  }
  const { mail, sender, blobs_dir } = given
  const { mail_from } = sender
  const read = await readInbound({ mail, blobs_dir, mail_from, verdicts, whole: true })
  return { mail: read, verdicts }
}
