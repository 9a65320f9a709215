import { isIP } from "node:net"
import type { Components } from "../../src/client/components"
import { type Client, fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import {
  countLine,
  differenceLines,
  idOf,
  isRefused,
  providerLine,
  recordColumns,
  recordLine,
  widthsOf,
} from "../lib/dns-records"
import { exits, Failure, isPassing, isSilence } from "../lib/errors"
import { flag } from "../lib/field-flags"
import { write } from "../lib/output"
import { deletes, own, row } from "../lib/resource"
import { ago, type Columns, coloured, idColumn, recordText, table, wide } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { age, millis, pause } from "../lib/time"

type Domain = Components["Domain"]

const columns: Columns<Domain> = {
  ID: idColumn("domain"),
  DOMAIN: wide(({ domain }) => domain),
  STATUS: coloured(({ status }) => status, { verified: "green", failed: "red" }, "yellow"),
  RECORDS: countLine,
  CHECKED: ago(({ last_checked_at }) => last_checked_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

function shownAdded(domain: Domain, paint: Paint, width: number): string {
  return [
    "",
    table(domain.dns_records, recordColumns, width, paint),
    "",
    ...unreachable(domain).map((line) => `${paint.yellow("!")} ${line}`),
    `Full values: belfry domains records ${domain.domain} --format bind`,
  ].join("\n")
}

/** Records with a host that other servers cannot resolve are useless. */
function unreachable({ dns_records }: Domain): string[] {
  const host = dns_records.find(({ purpose }) => purpose === "return_path")?.value ?? ""
  if (host.includes(".") && isIP(host) === 0) return []
  return [`Other servers cannot find the host "${host}". Set domains.host on the server first.`]
}

function shownKeys({ dns_records }: Domain, paint: Paint, width: number): string {
  const keys = dns_records.filter(({ purpose }) => purpose === "dkim")
  return `\n${table(keys, recordColumns, width, paint)}`
}

const shown = (domain: Domain, paint: Paint, width: number): string => {
  const facts = recordText(domain, paint, {
    ...{ dns_records: null, records_total: null, verification_token: null, project_id: null },
    records_verified: countLine(domain),
    waits_for: providerLine(domain) || null,
  })
  return `${facts}\n\n${table(domain.dns_records, recordColumns, width, paint)}`
}

const FORMATS = ["bind", "cloudflare", "terraform"]

const zoneRow = row("", "GET /v1/domains/{domain_id}/zonefile", { id: idOf })

async function printRecords({ output }: Context, domain: Domain, format: unknown): Promise<void> {
  if (format === "json") {
    await output.raw(`${JSON.stringify(domain.dns_records, null, 2)}\n`)
    return
  }
  await output.list(domain.dns_records, recordColumns)
  await output.next(`belfry domains records ${domain.domain} --format bind`)
}

type DnsRecord = Components["DnsRecord"]

/** A check takes ten seconds at most, and one is allowed in ten seconds. */
const CHECK_TIMEOUT = 20_000
const EVERY = 10_000

/** Sixty checks an hour are allowed for all callers together: these leave ten for others. */
const QUICK_LOOKS = 12
const LATER_EVERY = 90_000

/**
 * The pause before the next live check, in milliseconds, by the number of checks so far. New
 * records are checked often.
 */
export const pauseAfter = (looks: number): number => (looks < QUICK_LOOKS ? EVERY : LATER_EVERY)

/** With `--watch` it goes on until the domain is verified, and prints every change. */
export const check: Action<{ watch?: boolean }> = async (context, { watch }, named = "") => {
  const client = context.client(CHECK_TIMEOUT)
  const domain_id = await idOf(client, named)
  if (watch) return await follow(context, client, domain_id)
  context.output.promises(fieldsOf("POST /v1/domains/{domain_id}/check"))
  const { domain, stale } = await checked(client, domain_id)
  const { dns_records, status, warning } = domain
  const human = () => report(domain, dns_records, stale, context.paint)
  await context.output.record(domain, human)
  if (status !== "verified" || warning !== null)
    await context.output.next(`belfry domains doctor ${domain.domain}`)
  return status === "verified" ? exits.done : exits.partly_failed
}

/** A domain, and why its records were not checked now; empty where they were. */
interface Seen {
  domain: Domain
  stale: string
}

/** A domain that is verified is looked at by the server's own schedule only. */
async function checked(client: Client, domain_id: string): Promise<Seen> {
  const params = { domain_id }
  try {
    return {
      domain: (await client.call("POST /v1/domains/{domain_id}/check", { params })).data,
      stale: "",
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "already_verified") throw error
    return {
      domain: (await client.call("GET /v1/domains/{domain_id}", { params })).data,
      stale: "the domain is verified",
    }
  }
}

/** Meanwhile the server looks by its own schedule: what that sees is worth telling, too. */
const MOST_WAIT = 60_000

async function follow(context: Context, client: Client, domain_id: string): Promise<number> {
  const { output, paint } = context
  const deadline = context.timeout === undefined ? Infinity : millis() + context.timeout
  let before = new Map<string, string>()
  let provider = ""
  let looks = 0
  for (;;) {
    const seen = await patientLook(client, domain_id, { deadline, is_known: before.size > 0 })
    if (!seen) return exits.try_later
    const { domain, stale, retry_ms } = seen
    if (stale === "") looks += 1
    const changed = domain.dns_records.filter(
      (one) => before.get(one.host + one.type) !== said(one),
    )
    const is_news = changed.length > 0 || providerLine(domain) !== provider
    if (is_news || domain.status !== "pending") {
      await output.line(domain, () => report(domain, changed, stale, paint))
    }
    provider = providerLine(domain)
    before = new Map(domain.dns_records.map((one) => [one.host + one.type, said(one)]))
    if (domain.status === "verified") return exits.done
    if (domain.status === "failed") return exits.failed
    const wait = retry_ms === undefined ? pauseAfter(looks) : Math.min(retry_ms, MOST_WAIT)
    const left = deadline - millis()
    if (left < Math.min(wait, EVERY)) return exits.try_later
    await pause(Math.min(wait, left))
  }
}

const said = ({ status, found, mistake }: DnsRecord) => JSON.stringify([status, found, mistake])

const FIRST_PAUSE = 500
const LONGEST_PAUSE = 30_000

interface Patience {
  /** In ms, as `millis` counts. */
  deadline: number
  /** The server has answered before: one that never did may be another's address. */
  is_known: boolean
}

/** Waits for a server that restarts, with one note. Undefined at the deadline. */
async function patientLook(client: Client, domain_id: string, { deadline, is_known }: Patience) {
  for (let tries = 0; ; tries++) {
    try {
      return await look(client, domain_id)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (!isPassing(error) && !(is_known && isSilence(error))) throw error
      if (tries === 0) await write(process.stderr, `${cleanLine(error.message)} ${GOES_ON}\n`)
      const wait = pauseOf(error, tries)
      if (millis() + wait > deadline) return undefined
      await pause(wait)
    }
  }
}

const GOES_ON = "The command asks again until the server answers."

/** Exponential backoff with jitter, and never less than Retry-After (ms). */
function pauseOf({ details: { retry_after } }: Failure, tries: number): number {
  const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** tries)
  const asked = typeof retry_after === "number" ? retry_after * 1000 : 0
  return Math.max(asked, longest / 2 + (Math.random() * longest) / 2)
}

interface Look extends Seen {
  /** Until when no check is allowed, in ms from now. */
  retry_ms?: number
}

/** A live check where one is allowed now, else what the last one saw. */
async function look(client: Client, domain_id: string): Promise<Look> {
  try {
    return await checked(client, domain_id)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "rate_limit_exceeded") throw error
    const { data: domain } = await client.call("GET /v1/domains/{domain_id}", {
      params: { domain_id },
    })
    const { retry_after } = error.details
    const retry_ms = typeof retry_after === "number" ? Math.max(1, retry_after) * 1000 : EVERY
    const again = age(new Date(millis() + retry_ms).toISOString())
    return { domain, stale: `the next check is allowed ${again}`, retry_ms }
  }
}

/** Results that are not of this moment say of which they are. */
function staleLines({ last_checked_at: last, next_check_at: next }: Domain, stale: string) {
  if (stale === "") return []
  const seen = last === null ? "not checked yet" : `result of ${last} (${age(last)} ago)`
  const then = next === null ? "" : `; the server's next check is at ${next} (${age(next)})`
  return [`Not checked now (${stale}): ${seen}${then}`]
}

/** One line a record, and at the end how far it is. */
function report(domain: Domain, records: DnsRecord[], stale: string, paint: Paint): string {
  const widths = widthsOf(domain.dns_records)
  const lines = records.map((record) => recordLine(record, widths, paint))
  const last = lines.pop() ?? cleanLine(domain.domain)
  const notes = [providerLine(domain), ...staleLines(domain, stale)].filter((note) => note !== "")
  const more = notes.map((note) => `${paint.yellow("!")} ${cleanLine(note)}`)
  return [...lines, `${last}        ${countLine(domain)}`, ...more].join("\n")
}

/** Looks anew where that is allowed, now or in a moment. Exit 8 when a required record is not right. */
export const doctor: Action<object> = async (context, _, named = "") => {
  const client = context.client(CHECK_TIMEOUT)
  const domain_id = await idOf(client, named)
  let seen = await look(client, domain_id)
  const { retry_ms = Infinity } = seen
  if (retry_ms <= Math.min(EVERY, context.timeout ?? EVERY)) {
    context.output.passing("checked a moment ago; the next check starts in a few seconds")
    await pause(retry_ms)
    context.output.passing("")
    seen = await look(client, domain_id)
  }
  const { domain, stale } = seen
  await context.output.record(domain, () => diagnosis(domain, stale, context.paint))
  const is_ill = domain.dns_records.some(isIll) || isRefused(domain)
  return is_ill ? exits.partly_failed : exits.done
}

/** A missing optional record is no mistake. */
function isIll({ required, verified, mistake }: DnsRecord): boolean {
  if (required && !verified) return true
  return Boolean(mistake) && mistake !== "not_there"
}

function diagnosis(domain: Domain, stale: string, paint: Paint): string {
  const widths = widthsOf(domain.dns_records)
  const parts = domain.dns_records.map((record) => {
    const lines = [recordLine(record, widths, paint)]
    lines.push(...differenceLines(record, paint))
    if (record.hint)
      lines.push(`  ${paint.yellow(record.mistake ?? "!")}  ${cleanLine(record.hint)}`)
    return lines.join("\n")
  })
  const notes = [domain.warning ?? "", providerLine(domain)].filter((note) => note !== "")
  const end = notes.map((note) => `${paint.red("!")} ${cleanLine(note)}`)
  const old = staleLines(domain, stale).map((note) => `${paint.yellow("!")} ${cleanLine(note)}`)
  return [...parts, ...end, ...old, `${countLine(domain)}, ${domain.status}`].join("\n")
}

export const domainRows = [
  row("add <domain>", "POST /v1/domains", {
    about: "add a domain, and show the DNS records that its zone needs",
    example: ["", "--return-path mail"],
    aliases: { dkim_selector: "selector" },
    flags: {
      receiving: flag(["--receiving", "also receive mail: its MX record leads to this server"]),
      tracking_subdomain: "host label of tracked links",
      return_path: "host label of the envelope sender (default: bounce)",
      dkim_selector: "selector of the DKIM key (default: svc1)",
    },
    done: ({ domain }) => `added ${domain}. Its zone needs these records:`,
    shown: shownAdded,
    next: ({ domain }) => `domains check ${domain} --watch`,
  }),
  row("list", "GET /v1/domains", {
    about: "list the domains, newest first",
    example: "--status pending",
    flags: { domain: "show only names that contain this text" },
    columns,
  }),
  row("get <domain>", "GET /v1/domains/{domain_id}", {
    about: "show one domain, by name or id",
    id: idOf,
    shown,
  }),
  row("update <domain>", "PATCH /v1/domains/{domain_id}", {
    example: "--return-path mail",
    flags: {
      receiving: "also receive mail: on or off",
      tracking_subdomain: "host label of tracked links, or none",
      return_path: "host label of the envelope sender",
    },
    id: idOf,
    shown,
  }),
  row("delete <domain>", "DELETE /v1/domains/{domain_id}", {
    ...deletes((name) => `Waiting mail from ${name} will fail.`),
    id: idOf,
  }),
  row("rotate-dkim <domain>", "POST /v1/domains/{domain_id}/rotate-dkim", {
    flags: { selector: "selector of the new key (default: svc2, then svc1)" },
    id: idOf,
    done: ({ domain }) =>
      `created a new key for ${domain}. Add its record, and keep the old record:`,
    shown: shownKeys,
    next: ({ domain }) => `domains records ${domain} --format bind`,
  }),
  row("records <domain>", "GET /v1/domains/{domain_id}", {
    about: "show the DNS records that the zone needs",
    example: "--format bind > acme.zone",
    options: [["--format <format>", "format of the output: bind, cloudflare, terraform or json"]],
    id: idOf,
    instead: ({ format }) => FORMATS.includes(String(format)) && zoneRow,
    refuse: ({ format }) =>
      format === undefined || format === "json"
        ? undefined
        : `--format: "${format}" is not one of ${FORMATS.join(", ")} and json`,
    print: (context, { data }, { format }) => printRecords(context, data, format),
  }),
  own("check <domain>", check, {
    about: "check the DNS records now, at every authoritative server",
    example: "--watch --timeout 1h",
    options: [["--watch", "repeat until it is verified; exit 1 if it fails, 75 at --timeout"]],
  }),
  own("doctor <domain>", doctor, {
    about: "name the mistake in each wrong record; exit 8 if there is one",
  }),
]
