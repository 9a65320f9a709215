import type { DnsRecord } from "./domain-record"

export const FORMATS = ["bind", "cloudflare", "terraform"] as const
export type Format = (typeof FORMATS)[number]

/** Maximum bytes of one string in a TXT record (RFC 1035 3.3.14). */
const STRING_BYTES = 255

/** The records as a zone file (RFC 1035 5), as one for Cloudflare's import, or as Terraform. */
export function zonefile(domain: string, records: DnsRecord[], format: Format): string {
  if (format === "terraform") return terraform(records)
  const lines = records.map((record) => line(record))
  return format === "bind" ? bind(domain, lines) : cloudflare(domain, lines)
}

const bind = (domain: string, lines: string[]) =>
  [`; Records of ${domain}. Names are absolute, so no $ORIGIN is needed.`, ...lines, ""].join("\n")

/** Its import reads the same form, and proxies what it is not told to leave alone. */
const cloudflare = (domain: string, lines: string[]) => {
  const plain = lines.map((one) => `${one} ; cf_tags=cf-proxied:false`)
  return [`;; Domain: ${domain}.`, ...plain, ""].join("\n")
}

function line({ host, ttl, type, priority, value }: DnsRecord): string {
  const data = { TXT: () => strings(value).join(" "), MX: () => `${priority} ${value}.` }
  const written = type === "CNAME" ? `${value}.` : data[type]()
  return `${host}.\t${ttl}\tIN\t${type}\t${written}`
}

const strings = (value: string): string[] => {
  const parts = value.match(new RegExp(`[\\s\\S]{1,${STRING_BYTES}}`, "g")) ?? [""]
  return parts.map((part) => `"${part.replace(/["\\]/g, "\\$&")}"`)
}

/** For Cloudflare's provider from version 5 on; a zone elsewhere needs another resource's name. */
function terraform(records: DnsRecord[]): string {
  const names = new Map<string, number>()
  const blocks = records.map((record) => {
    const base = record.purpose
    const seen = (names.get(base) ?? 0) + 1
    names.set(base, seen)
    return block(seen === 1 ? base : `${base}_${seen}`, record)
  })
  return [PROVIDER, VARIABLE, ...blocks].join("\n")
}

const PROVIDER = `terraform {
  required_providers {
    cloudflare = {
      source  = "cloudflare/cloudflare"
      version = "~> 5.0"
    }
  }
}
`

const VARIABLE = `variable "zone_id" {
  type = string
}
`

function block(name: string, { host, type, value, priority, ttl }: DnsRecord): string {
  const fields: [string, string][] = [
    ["zone_id", "var.zone_id"],
    ["name", literal(host)],
    ["type", literal(type)],
    ["content", literal(value)],
    ["ttl", String(ttl)],
    ...(priority === null ? [] : [["priority", String(priority)] as [string, string]]),
  ]
  const width = Math.max(...fields.map(([key]) => key.length))
  const lines = fields.map(([key, text]) => `  ${key.padEnd(width)} = ${text}`)
  return [`resource "cloudflare_dns_record" "${name}" {`, ...lines, "}", ""].join("\n")
}

/** In HCL `${` and `%{` begin a template; doubled, the first character stands for itself. */
const literal = (text: string) =>
  JSON.stringify(text).replace(/[$%]\{/g, (found) => found.charAt(0) + found)
