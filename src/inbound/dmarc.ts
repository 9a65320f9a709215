import { isDmarc } from "../domains/check-dmarc"
import { organizational } from "../domains/names"
import { parseTags } from "../lib/record-text"
import type { DnsAnswer } from "./dns-answers"
import type { MailAuthors } from "./header-rows"
import type { SpfResult } from "./sender-policy"
import type { DkimResult } from "./signatures"

/** Mail of more authors fails without a look at their policies. */
const MAX_AUTHOR_DOMAINS = 5

type DmarcPolicy = "none" | "quarantine" | "reject"

export interface DmarcResult {
  result: "pass" | "fail" | "none" | "temperror"
  /** The domain of the author, `From`. Empty where there is none. */
  domain: string
  /** Where the policy stands: the domain of the author, or the one that it was registered under. */
  policy_domain: string | null
  /** What the policy asks for when a mail fails: `sp=` for subdomains, else `p=`. */
  policy: DmarcPolicy | null
  /** The share of the failed mail that the policy is for. */
  percent: number
  /** The domains of right signatures that fit the author's. */
  dkim_aligned: string[]
  /** Whether SPF passed for a domain that fits the author's. */
  spf_aligned: boolean
  reason: string
}

/** What was found out about a mail before its policy is asked for. */
export interface Authenticated {
  spf: SpfResult
  dkim: DkimResult[]
}

type LookUpTxt = (name: string) => Promise<DnsAnswer>

/**
 * DMARC (RFC 7489). Of several authors each is evaluated, and the worst result counts (6.6.1). A mail
 * with several From fields never passes, because readers differ in which one they show. Nor does one
 * whose header is too large.
 */
export async function evaluateDmarc(
  { fields, domains, is_cut }: MailAuthors,
  known: Authenticated,
  lookUp: LookUpTxt,
): Promise<DmarcResult> {
  if (is_cut) return { ...forged(domains), reason: "The header is too large to find its author." }
  if (fields > 1) {
    const reason = `The mail has ${fields} From fields, and only one is allowed (RFC 5322 3.6).`
    return { ...forged(domains), reason }
  }
  if (domains.length > MAX_AUTHOR_DOMAINS) {
    return { ...forged(domains), reason: "The mail names too many authors." }
  }
  const results = await Promise.all(domains.map((domain) => ofAuthor(domain, known, lookUp)))
  const reason =
    fields === 0 ? "The mail has no From field." : "The From field names no domain to ask."
  return worst(results) ?? { ...none(""), reason }
}

/** The result where nothing is known. */
export const undecided = (reason: string): DmarcResult => ({
  ...none(""),
  result: "temperror",
  reason,
})

const none = (domain: string): DmarcResult => ({
  result: "none",
  domain,
  policy_domain: null,
  policy: null,
  percent: 100,
  dkim_aligned: [],
  spf_aligned: false,
  reason: "",
})

/** RFC 7489 6.6.1: such mail is usually refused. */
const forged = (domains: string[]): DmarcResult => ({
  ...none(domains[0] ?? ""),
  result: "fail",
  policy: "reject",
})

const BADNESS = ["pass", "none", "temperror", "fail"]
const STRENGTH = [null, "none", "quarantine", "reject"]

/** The strictest policy among those that fail. */
const worst = (results: DmarcResult[]): DmarcResult | undefined =>
  results.toSorted(
    (one, other) =>
      BADNESS.indexOf(other.result) - BADNESS.indexOf(one.result) ||
      STRENGTH.indexOf(other.policy) - STRENGTH.indexOf(one.policy),
  )[0]

async function ofAuthor(
  domain: string,
  { spf, dkim }: Authenticated,
  lookUp: LookUpTxt,
): Promise<DmarcResult> {
  const found = await policyOf(domain, lookUp)
  if ("unknown" in found) {
    const reason = `DNS did not answer for the DMARC policy of ${domain}: ${found.unknown}.`
    return { ...none(domain), result: "temperror", reason }
  }
  const { tags, policy_domain } = found
  if (!tags || !policy_domain) return { ...none(domain), reason: `${domain} has no DMARC policy.` }

  const fits = (tag: string, other: string) =>
    tags.get(tag)?.toLowerCase() === "s"
      ? other === domain
      : organizational(other) === organizational(domain)
  const ofResult = (wanted: string) => ({
    dkim_aligned: dkim.filter((one) => one.result === wanted && fits("adkim", one.domain)),
    spf_aligned: spf.result === wanted && fits("aspf", spf.domain.toLowerCase()),
  })
  const passed = ofResult("pass")
  const open = ofResult("temperror")
  const any = ({ dkim_aligned, spf_aligned }: typeof open) => dkim_aligned.length > 0 || spf_aligned
  const result = any(passed) ? "pass" : any(open) ? "temperror" : "fail"
  const base: DmarcResult = {
    ...none(domain),
    result,
    policy_domain,
    ...appliedPolicy(tags, policy_domain !== domain),
    dkim_aligned: [...new Set(passed.dkim_aligned.map((one) => one.domain))],
    spf_aligned: passed.spf_aligned,
  }
  return { ...base, reason: inWords(base) }
}

function inWords({ result, domain, dkim_aligned, spf_aligned }: DmarcResult): string {
  if (result === "temperror") {
    return `DNS did not answer for what could speak for ${domain}, so the mail was not judged.`
  }
  if (result === "fail") return `Neither SPF nor a DKIM signature speaks for ${domain}.`
  const proofs = [
    ...(spf_aligned ? ["SPF"] : []),
    ...dkim_aligned.map((name) => `the DKIM signature of ${name}`),
  ]
  const text = `${proofs.join(" and ")} ${proofs.length > 1 ? "speak" : "speaks"} for ${domain}.`
  return text[0]?.toUpperCase() + text.slice(1)
}

type PolicyTags = Map<string, string>

/**
 * RFC 7489 6.6.3: the record of the domain itself, then that of the domain that was registered.
 * Two records at one name are like none.
 */
async function policyOf(
  domain: string,
  lookUp: LookUpTxt,
): Promise<{ unknown: string } | { tags?: PolicyTags; policy_domain?: string }> {
  for (const policy_domain of new Set([domain, organizational(domain)])) {
    const answer = await lookUp(`_dmarc.${policy_domain}`)
    if ("unknown" in answer) return answer
    const texts = answer.rows.map((row) => (Array.isArray(row) ? row.join("") : String(row)))
    const records = texts.filter(isDmarc)
    if (records.length === 0) continue
    const tags = records.length === 1 ? readPolicy(records[0] ?? "") : undefined
    return tags ? { tags, policy_domain } : {}
  }
  return {}
}

const POLICY = /^(?:none|quarantine|reject)$/i

/** RFC 7489 6.6.3, 6: without a valid policy a record counts as `p=none`, if it asks for reports. */
function readPolicy(text: string): PolicyTags | undefined {
  const { tags } = parseTags(text)
  const is_valid = POLICY.test(tags.get("p") ?? "") && POLICY.test(tags.get("sp") ?? "none")
  if (is_valid) return tags
  if (!/^\s*[a-z][a-z0-9+.-]*:/i.test(tags.get("rua") ?? "")) return undefined
  tags.delete("sp")
  return tags.set("p", "none")
}

/** The test mode of the successor of RFC 7489 (`t=y`) asks for one step less. */
function appliedPolicy(tags: PolicyTags, is_inherited: boolean) {
  const published = (is_inherited && tags.get("sp")) || tags.get("p") || "none"
  const policy = published.toLowerCase() as DmarcPolicy
  const given = tags.get("pct") ?? ""
  const percent = /^(?:100|\d{1,2})$/.test(given) ? Number(given) : 100
  const milder: Record<DmarcPolicy, DmarcPolicy> = {
    reject: "quarantine",
    quarantine: "none",
    none: "none",
  }
  return { policy: tags.get("t")?.toLowerCase() === "y" ? milder[policy] : policy, percent }
}
