import type { Client } from "./client"
import type { Action, Context } from "./context"
import {
  countLine,
  type DnsRecord,
  type Domain,
  differenceLines,
  isRefused,
  pathOf,
  providerLine,
  recordLine,
  widthsOf,
} from "./domain-records"
import { exits, Failure } from "./failure"
import { domain_fields } from "./fields"
import { cleanLine, type Paint } from "./terminal"
import { millis, pause } from "./time"

/** A check takes ten seconds at most, and one is allowed in ten seconds. */
const CHECK_TIMEOUT = 20_000
const EVERY = 10_000

interface CheckOptions {
  watch?: boolean
}

/** With `--watch` it goes on until the domain is verified, and tells whatever changes. */
export const check: Action<CheckOptions> = async (context, { watch }, named = "") => {
  const client = context.client(CHECK_TIMEOUT)
  const path = await pathOf(client, named)
  if (watch) return await follow(context, client, path)
  context.output.promises(domain_fields)
  const data = await checked(client, path)
  await context.output.record(data, () => report(data, data.dns_records, context.paint))
  if (data.status !== "verified" || data.warning !== null)
    await context.output.next(`belfry domains doctor ${data.domain}`)
  return data.status === "verified" ? exits.done : exits.partly_failed
}

/** A domain that is verified needs no check: what the last one saw is the answer. */
async function checked(client: Client, path: string): Promise<Domain> {
  try {
    return (await client.post<Domain>(`${path}/check`)).data
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "already_verified") throw error
    return (await client.get<Domain>(path)).data
  }
}

async function follow(context: Context, client: Client, path: string): Promise<number> {
  const { output, paint } = context
  const deadline = context.timeout === undefined ? Infinity : millis() + context.timeout
  let before = new Map<string, string>()
  let provider = ""
  for (;;) {
    const { domain, wait } = await look(client, path)
    const changed = domain.dns_records.filter(
      (one) => before.get(one.host + one.type) !== said(one),
    )
    const is_news = changed.length > 0 || providerLine(domain) !== provider
    if (is_news || domain.status !== "pending") {
      await output.line(domain, () => report(domain, changed, paint))
    }
    provider = providerLine(domain)
    before = new Map(domain.dns_records.map((one) => [one.host + one.type, said(one)]))
    if (domain.status === "verified") return exits.done
    if (domain.status === "failed") return exits.failed
    if (millis() + wait > deadline) return exits.try_later
    await pause(wait)
  }
}

const said = ({ status, found, mistake }: DnsRecord) => JSON.stringify([status, found, mistake])

/** A live check where one is allowed now, else what the last one saw. */
async function look(client: Client, path: string): Promise<{ domain: Domain; wait: number }> {
  try {
    const { data } = await client.post<Domain>(`${path}/check`)
    return { domain: data, wait: EVERY }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { code, details } = error
    if (code !== "already_verified" && code !== "rate_limit_exceeded") throw error
    const { data } = await client.get<Domain>(path)
    const retry_after = typeof details.retry_after === "number" ? details.retry_after : 0
    return { domain: data, wait: Math.min(Math.max(1000, retry_after * 1000), 60_000) }
  }
}

/** One line a record, and at the end how far it is. */
function report(domain: Domain, records: DnsRecord[], paint: Paint): string {
  const widths = widthsOf(domain.dns_records)
  const lines = records.map((record) => recordLine(record, widths, paint))
  const last = lines.pop() ?? cleanLine(domain.domain)
  const waits = providerLine(domain)
  const more = waits === "" ? [] : [`${paint.yellow("!")} ${cleanLine(waits)}`]
  return [...lines, `${last}        ${countLine(domain)}`, ...more].join("\n")
}

/** Looks anew where that is allowed. Exit 8 when a required record is not right. */
export const doctor: Action<object> = async (context, _, named = "") => {
  const client = context.client(CHECK_TIMEOUT)
  const { domain } = await look(client, await pathOf(client, named))
  await context.output.record(domain, () => diagnosis(domain, context.paint))
  const is_ill = domain.dns_records.some(isIll) || isRefused(domain)
  return is_ill ? exits.partly_failed : exits.done
}

/** What is optional, and not there, is nobody's mistake. */
function isIll({ required, verified, mistake }: DnsRecord): boolean {
  if (required && !verified) return true
  return Boolean(mistake) && mistake !== "not_there"
}

function diagnosis(domain: Domain, paint: Paint): string {
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
  return [...parts, ...end, `${countLine(domain)}, ${domain.status}`].join("\n")
}
