import type { DmarcResult } from "./dmarc"
import { NO_CHAIN } from "./header-rows"
import type { SpfResult } from "./sender-policy"
import type { ArcResult, DkimResult, SignatureVerdicts } from "./signatures"

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

export interface MailVerdicts extends VerdictWords {
  detail: VerdictDetail
}

/** What each verdict rests on, with a reason in words. It is JSON. */
interface VerdictDetail {
  spf: SpfResult
  dkim: DkimResult[]
  dmarc: DmarcResult & {
    /** 0 to 99. The policy is for this mail when it is below `percent`. */
    sample: number
  }
  arc: ArcResult
}

/** What a thread would say of a mail that has no signature and no ARC field. */
export const UNSIGNED: SignatureVerdicts = {
  dkim: [],
  arc: { result: "none", sealers: [], reason: NO_CHAIN },
}

/** The verdicts with what they rest on, safe to print. */
export function summary(found: VerdictDetail): MailVerdicts {
  return { ...wordsOf(found), detail: printable(found) }
}

/** The verdicts alone. */
export function wordsOf({
  spf,
  dkim,
  dmarc,
  arc,
}: Omit<VerdictDetail, "dmarc"> & { dmarc: DmarcResult }): VerdictWords {
  const results = dkim.map(({ result }) => result)
  const first = (["pass", "temperror", "fail"] as const).find((result) => results.includes(result))
  const verdict = SPF_VERDICTS[spf.result]
  return {
    spf: verdict,
    dkim: first ?? "none",
    dmarc: dmarc.result,
    arc: arc.result,
    verified: verdict !== "fail" && dmarc.result !== "fail",
  }
}

/** The mail may put anything into a name: kept are 300 characters that every terminal may show. */
function printable<T>(value: T): T {
  if (typeof value === "string") {
    return value.slice(0, MAX_SHOWN).replace(/[^ -~]/g, "?") as T
  }
  if (Array.isArray(value)) return value.map(printable) as T
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, printable(one)])) as T
}

const MAX_SHOWN = 300

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
