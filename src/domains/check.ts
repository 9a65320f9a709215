import { isLiteral } from "../core/destination"
import { bareName, DnsError, type Resolver } from "../core/dns"
import { monotonic } from "../core/time"
import {
  type Authority,
  authorityOf,
  isReached,
  LAME,
  type NameServers,
  type ZoneFault,
} from "./authoritative"
import { checkDkim } from "./check-dkim"
import { checkDmarc, isDmarc } from "./check-dmarc"
import { checkVerification, mismatch, missing, type RecordResult, undecided } from "./check-result"
import { checkSpf } from "./check-spf"
import {
  type DomainRow,
  type Expected,
  expectedRecords,
  type KeyRow,
  type RecordTargets,
} from "./expected-records"
import { findMisplaced } from "./misplaced-record"
import { organizational } from "./names"
import type { RecordCheck, RecordChecks, ServerAnswer } from "./tables"

/** A little less than the ten seconds that a check may take for its caller. */
const CHECK_MS = 9000

/** What is left of it for saying what was seen, when a search for the reason has found none. */
const SPARE_MS = 300

interface CheckedDomain {
  row: DomainRow
  keys: KeyRow[]
  targets: RecordTargets
}

/** When a check that begins now has to have its answers (monotonic). */
export const endOfCheck = () => monotonic() + CHECK_MS

/**
 * Looks every record up at every authoritative server, in nine seconds at most: what is not
 * answered by then is `pending`. Never rejects for what the servers do.
 */
export async function checkRecords(
  net: NameServers,
  subject: CheckedDomain,
  until = endOfCheck(),
): Promise<RecordChecks> {
  const { row, keys, targets } = subject
  const records = expectedRecords(row, keys, targets)
  const late = (): RecordCheck =>
    unanswered([], "The name servers did not answer in time. The next check asks again.")
  const authority = await inTime(authorityOf(net, row.domain, until), until, undefined)
  const checks = await Promise.all(
    records.map(async (record): Promise<[string, RecordCheck]> => {
      if (!authority) return [record.key, late()]
      if (authority.fault) return [record.key, noServers(authority.fault)]
      const reading = examine({ net, authority, until }, subject, record).catch(failedCheck)
      return [record.key, await inTime(reading, until, late())]
    }),
  )
  return Object.fromEntries(checks)
}

const failedCheck = (error: unknown): RecordCheck =>
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
  { row, targets }: CheckedDomain,
  record: Expected,
): Promise<RecordCheck> {
  const patience = until - SPARE_MS
  const check: CheckValues = (values) =>
    inTime(checkFor(net, row, record, targets)(values), patience, undecided("unanswered", LATE))
  const reading = await consensus(await authority.ask(record.host, record.type), check)
  if (record.purpose === "dmarc" && hasNoPolicy(reading)) {
    const above = await inTime(ofOrganization(net, row.domain, until), patience, lateAbove)
    // The answers of the domain's own servers stay visible.
    if (above?.status === "pending") {
      const { status, mistake, hint } = above
      return { ...reading, status, mistake, hint }
    }
    if (above) return above
  }
  if (!isNowhere(reading)) return reading
  const search = atApex(authority, row, record).then(
    (it) => it ?? findMisplaced(authority, row, record),
  )
  const found = await inTime(search, until - SPARE_MS, undefined)
  return found && !found.ok ? { ...reading, mistake: found.mistake, hint: found.hint } : reading
}

/** Other texts of the name count for nothing: then what is above holds (RFC 7489 6.6.3). */
const hasNoPolicy = ({ status, found }: RecordCheck) =>
  status === "missing" || (status === "mismatch" && !found.some(isDmarc))

const isNowhere = ({ status, mistake }: RecordCheck) =>
  status === "missing" && (mistake === "not_there" || mistake === "alias_in_the_way")

type CheckValues = (values: string[]) => Promise<RecordResult>

function checkFor(
  net: NameServers,
  row: DomainRow,
  record: Expected,
  targets: RecordTargets,
): CheckValues {
  const { purpose, type, host, value, dkim } = record
  const zones = [row.domain, organizational(row.domain)]
  if (type === "CNAME") return (values) => checkAlias(values, value, zones, net.dns, host)
  if (purpose === "verification") return async (values) => checkVerification(values, value)
  if (purpose === "spf") return (values) => checkSpf(values, targets.mechanisms, host, net.dns.txt)
  if (purpose === "dmarc") return async (values) => checkDmarc(values)
  if (dkim) return async (values) => checkDkim(values, dkim)
  return (values) => checkMx(values, value, zones, net.dns)
}

/**
 * The DMARC policy of the organizational domain holds where a domain has none (RFC 7489 6.6.3). The
 * servers of that domain are asked, because a subdomain may have other servers. Undefined when there
 * is no policy either.
 */
async function ofOrganization(
  net: NameServers,
  domain: string,
  until: number,
): Promise<RecordCheck | undefined> {
  const zone = organizational(domain)
  if (zone === domain) return undefined
  const above = await authorityOf(net, zone, until)
  // What is above is not there either: then there is no policy.
  if (above.fault?.status === "missing") return undefined
  if (above.fault) return noServers(above.fault)
  const answers = await above.ask(`_dmarc.${zone}`, "TXT")
  const reading = await consensus(answers, async (values) => checkDmarc(values))
  return reading.status === "verified" || reading.status === "pending" ? reading : undefined
}

/** A CNAME allows no other record beside it, but many DNS providers accept one at the zone's apex. */
async function atApex(
  authority: Authority,
  { domain }: DomainRow,
  { purpose }: Expected,
): Promise<RecordResult | undefined> {
  if (purpose !== "verification" && purpose !== "receiving") return undefined
  const answers = await authority.ask(domain, "CNAME")
  const alias = answers.filter(isReached).find(({ values }) => values.length > 0)?.values[0]
  if (!alias) return undefined
  const hint = `${domain} itself is an alias (CNAME) of ${alias}. A CNAME allows no other record beside it. Use an A record or ALIAS instead.`
  return { ok: false, status: "missing", mistake: "alias_at_apex", hint }
}

/**
 * Combines the answers of all servers. A record is present when every reachable server has it,
 * and the result is unknown when no server can be reached.
 */
async function consensus(
  answers: ServerAnswer[],
  check: (values: string[]) => Promise<RecordResult>,
): Promise<RecordCheck> {
  const reached = answers.filter(isReached)
  if (reached.length === 0) return unresolved(answers) ?? unanswered(answers, silence(answers))
  const results = new Map<string, Promise<RecordResult>>()
  const resultOf = ({ values }: ServerAnswer) => {
    const text = JSON.stringify([...values].sort())
    const result = results.get(text) ?? check(values)
    results.set(text, result)
    return result
  }
  const checked = await Promise.all(
    reached.map(async (answer) => ({ ...answer, result: await resultOf(answer) })),
  )
  const found = [...new Set(reached.flatMap(({ values }) => values))]
  const bad = checked.filter(({ result }) => !result.ok)
  // What is wrong for certain at one server is not put right by what is open at another.
  const wrong = bad.filter(({ result }) => !result.ok && result.status !== "pending")
  const worst = wrong[0] ?? bad[0]
  if (!worst || worst.result.ok) {
    return { ...fine(checked[0]?.result, answers), found, answers }
  }
  const { status, mistake, hint, difference = null } = worst.result
  const base = { found, answers, difference }
  const good = checked.filter(({ result }) => result.ok)
  if (status === "pending") return { ...base, status, mistake, hint }
  if (good.length > 0) {
    const text = `${names(good)} has the record, but ${names(wrong)} has another version of the zone. ${hint}`
    return { ...base, status: "mismatch", mistake: "servers_disagree", hint: text }
  }
  const via = status === "mismatch" || reached.some(({ alias }) => alias) ? aliasIn(reached) : null
  if (via) {
    const text = `The name is an alias (CNAME) of ${via}, so receivers read the records there. ${hint}`
    return { ...base, status, mistake: "alias_in_the_way", hint: text }
  }
  return { ...base, status, mistake, hint }
}

function fine(result: RecordResult | undefined, answers: ServerAnswer[]) {
  const silent = answers.filter((answer) => !isReached(answer))
  const [first] = silent
  const base = { status: "verified" as const, difference: null }
  if (result?.ok && result.mistake) {
    return { ...base, mistake: result.mistake, hint: result.hint ?? null }
  }
  if (!first) return { ...base, mistake: null, hint: null }
  const hint = `${names(silent)} did not answer (${first.answer}). Have it repaired, because receivers ask it, too.`
  return { ...base, mistake: "server_failing", hint }
}

/** No server answered about the name, so the state of the record is unknown. */
const unanswered = (answers: ServerAnswer[], hint: string): RecordCheck => ({
  status: "pending",
  found: [],
  hint,
  mistake: "unanswered",
  difference: null,
  answers,
})

const LATE = "The target of the record did not answer in time. The next check asks again."
const lateAbove = unanswered(
  [],
  "The DMARC policy of the organization's domain was not found in time. The next check asks again.",
)

/** The name is an alias, and the alias could not be resolved. */
function unresolved(answers: ServerAnswer[]): RecordCheck | undefined {
  const led = answers.find(({ alias }) => alias !== null)
  if (!led) return undefined
  const hint = `The name is an alias (CNAME) of ${led.alias}, which cannot be resolved (${led.server}: ${led.answer}). Nothing is lost; the next check asks again.`
  return { ...unanswered(answers, hint), mistake: "alias_unresolved" }
}

/** No server could be asked: every record gets this result. */
const noServers = ({ status, mistake, hint }: ZoneFault): RecordCheck => ({
  ...unanswered([], hint),
  status,
  mistake,
})

const LAME_ANSWERS = ["REFUSED", "NOTAUTH", LAME]

function silence(answers: ServerAnswer[]): string {
  const said = answers.map(({ server, answer }) => `${server}: ${answer}`).join("; ")
  const lame = answers.length > 0 && answers.every(({ answer }) => LAME_ANSWERS.includes(answer))
  if (lame)
    return `The name servers of the domain do not know it (${said}). Check that the zone is set up there.`
  return `No name server of the domain answers (${said}). Nothing is lost; the next check asks again.`
}

const aliasIn = (reached: ServerAnswer[]) => reached.find(({ alias }) => alias)?.alias ?? null

const names = (answers: ServerAnswer[]) => answers.map(({ server }) => server).join(", ")

/** A hostile server could invent a new alias for each answer, without end. */
const MOST_ALIASES = 10

/** An MX record names our host; others beside it do no harm. `values` are `10 mx.example.com`. */
async function checkMx(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
): Promise<RecordResult> {
  const targets = values.map((value) => value.slice(value.indexOf(" ") + 1))
  if (targets.includes(host)) return { ok: true }
  const [first] = targets
  if (first === undefined) return missing("not_there", "There is no MX record with this name yet.")
  if (targets.includes(".")) {
    return mismatch(
      "null_mx",
      'The MX record is ".", which says that this name accepts no mail. Remove it.',
    )
  }
  const numeric = targets.find(
    (target) => isLiteral(target) || isLiteral(withoutZone(target, zones)),
  )
  if (numeric) {
    const hint = `An MX record must name a host, never an address such as ${numeric}. Enter ${host} instead.`
    return mismatch("mx_address", hint)
  }
  if (targets.some((target) => withoutZone(target, zones) === host)) {
    const hint = `The DNS provider appended the zone to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  const elsewhere = `The MX record names ${targets.join(", ")}, not ${host}.`
  const alias = await aliasOf(first, dns)
  // Wherever it leads, it is not ours.
  if (alias instanceof DnsError) {
    return mismatch("mx_elsewhere", `${elsewhere} ${first} cannot be resolved: ${alias.message}`)
  }
  if (alias) {
    const hint = `The MX record names ${first}, which is an alias of ${alias}. It must name ${host} itself.`
    return mismatch("mx_alias", hint)
  }
  return mismatch("mx_elsewhere", elsewhere)
}

const withoutZone = (name: string, zones: string[]) => {
  const zone = zones.find((one) => name.endsWith(`.${one}`))
  return zone ? name.slice(0, -zone.length - 1) : name
}

/** The name is an alias of ours, directly or over others. */
async function checkAlias(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
  name: string,
): Promise<RecordResult> {
  const [target] = values
  if (target === host) return { ok: true }
  if (target === undefined) return withoutAlias(name, host, dns)
  if (withoutZone(target, zones) === host) {
    const hint = `The DNS provider appended the zone to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  const elsewhere = `The CNAME record leads to ${target}, not to ${host}`
  let at = target
  for (let hops = 0; hops < MOST_ALIASES; hops++) {
    const next = await aliasOf(at, dns)
    if (next === host) return { ok: true }
    if (next === undefined) break
    if (next instanceof DnsError) {
      const hint = `${elsewhere}, and ${at} cannot be resolved: ${next.message}`
      return next.transient
        ? undecided("alias_unresolved", hint)
        : mismatch("alias_elsewhere", hint)
    }
    at = next
  }
  return mismatch("alias_elsewhere", `${elsewhere}.`)
}

/** What a name is an alias of, or why that is not known. */
const aliasOf = (name: string, dns: Resolver): Promise<string | DnsError | undefined> =>
  unlessUnknown(dns.cname(name).then(([alias]) => alias && bareName(alias)))

async function unlessUnknown<Value>(work: Promise<Value>): Promise<Value | DnsError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

async function withoutAlias(name: string, host: string, dns: Resolver): Promise<RecordResult> {
  const found = await unlessUnknown(dns.a(name))
  const [address] = found instanceof DnsError ? [] : found
  if (address === undefined)
    return missing("not_there", "There is no CNAME record with this name yet.")
  const hint = `The name has the address ${address}. Replace it with a CNAME to ${host}.`
  return mismatch("address_instead", hint)
}
