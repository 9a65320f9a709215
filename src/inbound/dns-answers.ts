import type { Mx } from "../core/dns"

export interface DnsQuestion {
  name: string
  type: "TXT" | "A" | "AAAA" | "MX" | "PTR"
}

/** The records; none for a name or a record that is not there. Or why nobody knows: a timeout, SERVFAIL. */
export type DnsAnswer = { rows: (string | string[] | Mx)[] } | { unknown: string }

/** What DNS said until now, by `keyOf`. It can be copied to a thread. */
export type DnsAnswers = Record<string, DnsAnswer>

export const keyOf = ({ name, type }: DnsQuestion) => `${type} ${name.toLowerCase()}`

/** The code of an error that says: DNS has not been asked yet, or did not answer. */
export const UNKNOWN = "ESERVFAIL"

/**
 * Answers mailauth from what is known already, so that the thread never waits for the network. A
 * question without an answer is put into `missing`. Then the result is worth nothing yet: the same
 * work is done again when the answer is there.
 */
export function answering(answers: DnsAnswers, missing: DnsQuestion[]) {
  return async (name: string, type: string): Promise<DnsAnswerRows> => {
    const question = { name, type: type as DnsQuestion["type"] }
    const answer = answers[keyOf(question)]
    if (!answer) missing.push(question)
    if (!answer || "unknown" in answer) {
      const reason = answer?.unknown ?? "DNS was not asked"
      throw Object.assign(new Error(reason), { code: UNKNOWN })
    }
    if (answer.rows.length === 0) {
      throw Object.assign(new Error(`no ${type} record of ${name}`), { code: "ENODATA" })
    }
    return answer.rows
  }
}

type DnsAnswerRows = (string | string[] | Mx)[]
