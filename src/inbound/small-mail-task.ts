import { evaluateDmarc, undecided } from "./dmarc"
import { type DnsAnswer, type DnsAnswers, type DnsQuestion, keyOf } from "./dns-answers"
import { UNSIGNED, type VerdictWords, wordsOf } from "./mail-verdicts"
import { type ReadMail, readInbound } from "./parse-inbound-task"
import { evaluateSpf, type SpfSender } from "./sender-policy"
import { readHeader, validateSignatures } from "./signatures"

export interface SmallMail {
  raw: Uint8Array
  sender: SpfSender
  /** When it came, in milliseconds since 1970: signatures are verified as of that time. */
  now: number
  answers: DnsAnswers
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
  for (const one of list) results.push(await readSmallMail(one))
  return results
}

async function readSmallMail(given: SmallMail): Promise<SmallMailResult> {
  try {
    const missing: DnsQuestion[] = []
    const verdicts = given.verdicts ?? (await verdictsOf(given, missing))
    if (missing.length > 0) return { missing }
    const { raw, sender, blobs_dir } = given
    const { mail_from } = sender
    const mail = await readInbound({ mail: raw, blobs_dir, mail_from, verdicts, whole: true })
    return { mail, verdicts }
  } catch (error) {
    return { failed: String(error) }
  }
}

/** As `verify`. What DNS has not been asked for is put into `missing`, and then the result is worth nothing yet. */
async function verdictsOf(
  { raw, sender, now, answers }: SmallMail,
  missing: DnsQuestion[],
): Promise<VerdictWords> {
  const header = await readHeader(raw)
  missing.push(...header.keys.filter((question) => !answers[keyOf(question)]))
  const spf = await evaluateSpf(sender, answers, missing)
  const is_early = header.is_unsigned || missing.length > 0
  const { dkim, arc } = is_early
    ? UNSIGNED
    : await validateSignatures(raw, new Date(now), answers, missing)
  const lookUp = async (name: string): Promise<DnsAnswer> => {
    const question = { name, type: "TXT" } as const
    const answer = answers[keyOf(question)]
    if (!answer) missing.push(question)
    return answer ?? { rows: [] } // so that it goes on, and says all that it wants to know
  }
  const dmarc = header.authors
    ? await evaluateDmarc(header.authors, { spf, dkim }, lookUp)
    : undecided("The header could not be read.")
  return wordsOf({ spf, dkim, dmarc, arc })
}
