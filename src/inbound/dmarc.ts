import { asksForReports, isDmarc } from "../domains/check-dmarc"
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
  /** Why it fails, for the sender; empty for every other result. */
  reason: string
}

/** What was found out about a mail before its policy is asked for. */
interface Authenticated {
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
  return worst(results) ?? none("")
}

/** The result where nothing is known. */
export const undecided = (domain: string): DmarcResult => ({ ...none(domain), result: "temperror" })

const none = (domain: string): DmarcResult => ({
  result: "none",
  domain,
  policy_domain: null,
  policy: null,
  percent: 100,
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
  if ("unknown" in found) return undecided(domain)
  const { tags, policy_domain } = found
  if (!tags || !policy_domain) return none(domain)

  const fits = (tag: string, other: string) =>
    tags.get(tag)?.toLowerCase() === "s"
      ? other === domain
      : organizational(other) === organizational(domain)
  const speaks = (wanted: string) =>
    dkim.some((one) => one.result === wanted && fits("adkim", one.domain)) ||
    (spf.result === wanted && fits("aspf", spf.domain.toLowerCase()))
  const result = speaks("pass") ? "pass" : speaks("temperror") ? "temperror" : "fail"
  return {
    ...{ result, domain, policy_domain, ...appliedPolicy(tags, policy_domain !== domain) },
    reason: result === "fail" ? `Neither SPF nor a DKIM signature speaks for ${domain}.` : "",
  }
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
  if (!asksForReports(tags)) return undefined
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
