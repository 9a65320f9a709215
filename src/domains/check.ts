import { monotonic } from "../core/time"
import { type Authority, authorityOf, isReached } from "./authoritative"
import type { NameServers } from "./delegation"
import { type DomainRow, type Expected, expectedRecords, type KeyRow } from "./expected"
import { hunt } from "./hunt"
import { judgeDkim } from "./judges/dkim"
import { isDmarc, judgeDmarc } from "./judges/dmarc"
import { judgeAlias, judgeMx } from "./judges/hosts"
import { judgeSpf } from "./judges/spf"
import { undecided, type Verdict } from "./judges/verdict"
import { judgeVerification } from "./judges/verification"
import { organizational } from "./names"
import type { Place } from "./place"
import type { RecordCheck, RecordChecks } from "./tables"
import { nobody, type Reading, unanswered, weigh } from "./weigh"

/** A little less than what somebody who waits for a check is promised. */
const CHECK_MS = 9000

/** What is left of it for saying what was seen, when a search for the reason has found none. */
const SPARE_MS = 300

export interface Subject {
  row: DomainRow
  keys: KeyRow[]
  place: Place
}

/** When a check that begins now has to have its answers (monotonic). */
export const endOfCheck = () => monotonic() + CHECK_MS

/**
 * Looks every record up at every authoritative server, in nine seconds at most: what is not
 * answered by then is `pending`. Never rejects for what the servers do.
 */
export async function lookUp(
  net: NameServers,
  subject: Subject,
  until = endOfCheck(),
): Promise<RecordChecks> {
  const { row, keys, place } = subject
  const records = expectedRecords(row, keys, place)
  const late = (): Reading =>
    unanswered([], "The name servers did not answer in time. The next check asks again.")
  const authority = await inTime(authorityOf(net, row.domain, until), until, undefined)
  const checks = await Promise.all(
    records.map(async (record): Promise<[string, RecordCheck]> => {
      if (!authority) return [record.key, late()]
      if (authority.trouble) return [record.key, nobody(authority.trouble)]
      const reading = examine({ net, authority, until }, subject, record).catch(troubled)
      return [record.key, await inTime(reading, until, late())]
    }),
  )
  return Object.fromEntries(checks)
}

const troubled = (error: unknown): Reading =>
  unanswered([], error instanceof Error ? error.message : String(error))

function inTime<Value, Late>(work: Promise<Value>, until: number, late: Late) {
  const left = Math.max(0, until - monotonic())
  const timer = Promise.withResolvers<Late>()
  const id = setTimeout(() => timer.resolve(late), left)
  return Promise.race([work, timer.promise]).finally(() => clearTimeout(id))
}

interface Look {
  net: NameServers
  authority: Authority
  until: number
}

async function examine(
  { net, authority, until }: Look,
  { row, place }: Subject,
  record: Expected,
): Promise<Reading> {
  const patience = until - SPARE_MS
  const judge: Judge = (values) =>
    inTime(judgeFor(net, row, record, place)(values), patience, undecided("unanswered", LATE))
  const reading = await weigh(await authority.ask(record.host, record.type), judge)
  if (record.purpose === "dmarc" && hasNoPolicy(reading)) {
    const above = await inTime(ofOrganization(net, row.domain, until), patience, lateAbove)
    // What the domain's own servers said stays to be seen.
    if (above?.status === "pending") {
      const { status, mistake, hint } = above
      return { ...reading, status, mistake, hint }
    }
    if (above) return above
  }
  if (!isNowhere(reading)) return reading
  const search = atApex(authority, row, record).then((it) => it ?? hunt(authority, row, record))
  const found = await inTime(search, until - SPARE_MS, undefined)
  return found && !found.ok ? { ...reading, mistake: found.mistake, hint: found.hint } : reading
}

const LATE = "The target of the record did not answer in time. The next check asks again."
const lateAbove = unanswered(
  [],
  "The DMARC policy of the organization's domain was not found in time. The next check asks again.",
)

/** Other texts of the name count for nothing: then what is above holds (RFC 7489 6.6.3). */
const hasNoPolicy = ({ status, found }: Reading) =>
  status === "missing" || (status === "mismatch" && !found.some(isDmarc))

const isNowhere = ({ status, mistake }: Reading) =>
  status === "missing" && (mistake === "not_there" || mistake === "alias_in_the_way")

type Judge = (values: string[]) => Promise<Verdict>

function judgeFor(net: NameServers, row: DomainRow, record: Expected, place: Place): Judge {
  const { purpose, type, host, value, dkim } = record
  const zones = [row.domain, organizational(row.domain)]
  if (type === "CNAME") return (values) => judgeAlias(values, value, zones, net.dns, host)
  if (purpose === "verification") return async (values) => judgeVerification(values, value)
  if (purpose === "spf") return (values) => judgeSpf(values, place.mechanisms, host, net.dns.txt)
  if (purpose === "dmarc") return async (values) => judgeDmarc(values)
  if (dkim) return async (values) => judgeDkim(values, dkim)
  return (values) => judgeMx(values, value, zones, net.dns)
}

/**
 * RFC 7489 6.6.3: where a domain has no policy, that of its organization holds. Asked of whoever
 * speaks for the organization: a domain below may have servers of its own, which know nothing of it.
 * Undefined when there is none either; while nobody says so, nothing is known.
 */
async function ofOrganization(
  net: NameServers,
  domain: string,
  until: number,
): Promise<Reading | undefined> {
  const zone = organizational(domain)
  if (zone === domain) return undefined
  const above = await authorityOf(net, zone, until)
  // What is above is not there either: then there is no policy.
  if (above.trouble?.status === "missing") return undefined
  if (above.trouble) return nobody(above.trouble)
  const answers = await above.ask(`_dmarc.${zone}`, "TXT")
  const reading = await weigh(answers, async (values) => judgeDmarc(values))
  return reading.status === "verified" || reading.status === "pending" ? reading : undefined
}

/** A CNAME allows no other record of its name, and many providers take one at the top all the same. */
async function atApex(
  authority: Authority,
  { domain }: DomainRow,
  { purpose }: Expected,
): Promise<Verdict | undefined> {
  if (purpose !== "verification" && purpose !== "receiving") return undefined
  const answers = await authority.ask(domain, "CNAME")
  const alias = answers.filter(isReached).find(({ values }) => values.length > 0)?.values[0]
  if (!alias) return undefined
  const hint = `${domain} itself is an alias (CNAME) of ${alias}. A CNAME allows no other record beside it. Use an A record or ALIAS instead.`
  return { ok: false, status: "missing", mistake: "alias_at_apex", hint }
}
