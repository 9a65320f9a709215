import { domainToASCII } from "node:url"
import type { Components } from "../../src/client/components"
import { idByName } from "./paging"
import { type Columns, coloured, wide } from "./table"
import { cleanLine, type Paint } from "./terminal"

type DnsRecord = Components["DnsRecord"]
type Domain = Components["Domain"]

/**
 * As the server keeps it: bücher.example has A-labels. What is no name stays: `domainToASCII` would
 * read the host out of `acme.com/x`, which is not a domain.
 */
function kept(named: string): string {
  const name = named.toLowerCase().replace(/\.$/, "")
  return /^[a-z0-9.\u0080-\u{10ffff}-]+$/u.test(name) ? domainToASCII(name) || name : name
}

/** Domains that end with the name of another one are found by it, too. */
export const idOf = idByName({
  noun: "domain",
  route: "GET /v1/domains",
  filter: "domain",
  field: "domain",
  kept,
  hint: (named) => `add it with \`belfry domains add ${named}\``,
})

export const recordColumns: Columns<DnsRecord> = {
  FOR: ({ purpose, required }) => (required ? purpose : `${purpose} (optional)`),
  TYPE: "type",
  NAME: "name",
  VALUE: wide(({ value, priority }) => (priority === null ? value : `${priority} ${value}`)),
  STATUS: coloured(({ status }) => status, { verified: "green" }, "yellow"),
}

const VALUE_CHARACTERS = 32

/** `DKIM  svc1._domainkey.acme.test  ✗ expected "v=DKIM1…"  found NXDOMAIN (ns1.acme.test)`. */
export function recordLine(
  record: DnsRecord,
  widths: { purpose: number; host: number },
  paint: Paint,
) {
  const { purpose, host, verified, status, value } = record
  const name = `${NAMES[purpose] ?? purpose}`.padEnd(widths.purpose)
  const start = `${paint.bold(name)}  ${cleanLine(host).padEnd(widths.host)}  `
  if (verified) return `${start}${paint.green("✓")} verified`
  if (status === "pending") {
    const reason = record.answers?.length ? `: ${foundOf(record)}` : ""
    return `${start}${paint.dim("…")} not known yet${reason}`
  }
  const wanted = `expected "${cut(value, value.startsWith("v=DKIM1") ? VERSION : VALUE_CHARACTERS)}"`
  const sign = record.required ? paint.red("✗") : paint.dim("· optional:")
  return `${start}${sign} ${wanted}  found ${foundOf(record)}`
}

/** What of a key is worth showing in a line. */
const VERSION = "v=DKIM1…".length

const NAMES: Record<string, string> = {
  verification: "TXT",
  spf: "SPF",
  dkim: "DKIM",
  dmarc: "DMARC",
  return_path: "MX",
  tracking: "CNAME",
  receiving: "MX",
}

export const widthsOf = (records: DnsRecord[]) => ({
  purpose: Math.max(0, ...records.map(({ purpose }) => (NAMES[purpose] ?? purpose).length)),
  host: Math.max(0, ...records.map(({ host }) => host.length)),
})

/** What the servers said, those that said the same together. */
export function foundOf({ answers = [], found }: DnsRecord): string {
  const said = new Map<string, string[]>()
  for (const { server, answer, values } of answers) {
    const text = values.length > 0 ? values.map((one) => `"${cut(one)}"`).join(" ") : empty(answer)
    said.set(text, [...(said.get(text) ?? []), server])
  }
  if (said.size === 0) return found.map((one) => `"${cut(one)}"`).join(" ") || "nothing"
  return [...said].map(([text, servers]) => `${text} (${cleanLine(servers.join(", "))})`).join("; ")
}

const empty = (answer: string) => (answer === "NOERROR" ? "no such record" : cleanLine(answer))

const cut = (text: string, most = VALUE_CHARACTERS) => {
  const clean = cleanLine(text)
  return clean.length > most ? `${clean.slice(0, most - 1)}…` : clean
}

const AROUND = 24

/** Both texts around the first wrong character, with a mark under it. */
export function differenceLines(record: DnsRecord, paint: Paint): string[] {
  const { difference } = record
  if (!difference || difference.at < 0) return []
  const from = Math.max(0, difference.at - AROUND)
  const part = (text: string) => {
    const shown = cleanLine(text.slice(from, difference.at + AROUND))
    const end = text.length > difference.at + AROUND ? "…" : ""
    return `${from > 0 ? "…" : ""}${shown}${end}`
  }
  const mark = " ".repeat(difference.at - from + (from > 0 ? 1 : 0))
  return [
    `  expected  ${part(difference.expected)}`,
    `  found     ${part(difference.found)}`,
    `            ${mark}${paint.red("^")} character ${difference.at + 1}`,
  ]
}

/** What the provider has not accepted yet; empty when it has. */
export function providerLine(domain: Domain): string {
  const { provider_identity_status: identity = "success", provider_dkim_status: dkim = "success" } =
    domain
  const is_fine = [identity, dkim].every((one) => one === "success" || one === "not_required")
  return is_fine
    ? ""
    : `the provider has not accepted the domain: identity ${identity}, DKIM ${dkim}`
}

/** The provider has refused the domain, which waiting does not change. */
export const isRefused = ({ provider_identity_status, provider_dkim_status }: Domain) =>
  provider_identity_status === "failed" || provider_dkim_status === "failed"

export const countLine = ({ records_verified, records_total }: Domain) =>
  `${records_verified}/${records_total} verified`
