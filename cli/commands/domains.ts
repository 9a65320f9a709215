import { isIP } from "node:net"
import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { Action } from "../lib/context"
import { countLine, idOf, providerLine, recordColumns } from "../lib/dns-records"
import { usage } from "../lib/errors"
import { asks, groupOf, row } from "../lib/resource"
import { examples, run } from "../lib/run"
import { ago, type Columns, fields, idColumn, table, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { check, doctor } from "./domain-checks"

type Domain = Components["Domain"]

const columns: Columns<Domain> = {
  ID: idColumn("domain"),
  DOMAIN: wide(({ domain }) => domain),
  STATUS: { cell: ({ status }) => status, paint: paintStatus },
  RECORDS: countLine,
  CHECKED: ago(({ last_checked_at }) => last_checked_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

function paintStatus(text: string, { status }: Domain, paint: Paint): string {
  if (status === "verified") return paint.green(text)
  return status === "failed" ? paint.red(text) : paint.yellow(text)
}

/** Domains that mail is sent from. */
export const domainRows = [
  row("add <domain>", "POST /v1/domains", {
    about: "add a domain, and show the DNS records that its zone needs",
    example: ["", "--return-path mail"],
    aliases: { dkim_selector: "selector" },
    flags: {
      receiving: false,
      tracking_subdomain: "host label of tracked links",
      return_path: "host label of the envelope sender (default: bounce)",
      dkim_selector: "selector of the DKIM key (default: svc1)",
    },
    options: (command) =>
      command.option("--receiving", "also receive mail: its MX record leads to this server"),
    body: ({ receiving }) => (receiving ? { receiving } : {}),
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
    example: "--yes",
    confirm: asks((name) => `Waiting mail from ${name} will fail.`, "delete"),
    id: idOf,
    done: (_, [name]) => `deleted ${name}`,
  }),
  row("rotate-dkim <domain>", "POST /v1/domains/{domain_id}/rotate-dkim", {
    flags: { selector: "selector of the new key (default: svc2, then svc1)" },
    id: idOf,
    done: ({ domain }) =>
      `created a new key for ${domain}. Add its record, and keep the old record:`,
    shown: shownKeys,
    next: ({ domain }) => `domains records ${domain} --format bind`,
  }),
]

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

function shown(domain: Domain, paint: Paint, width: number): string {
  const facts = fields(
    [
      ["id", domain.id],
      ["domain", domain.domain],
      ["status", domain.status],
      ["records", countLine(domain)],
      ["warning", domain.warning],
      ["waits for", providerLine(domain) || null],
      ["checked", domain.last_checked_at],
      ["next check", domain.next_check_at],
      ["verified", domain.verified_at],
      ["created", domain.created_at],
    ],
    paint,
  )
  return `${facts}\n\n${table(domain.dns_records, recordColumns, width, paint)}`
}

export function define(program: Command): void {
  const domains = groupOf(program, "domains")
  domains
    .command("check <domain>")
    .description("check the DNS records now, at every authoritative server")
    .option("--watch", "repeat until it is verified; exit 1 if it fails, 75 at --timeout")
    .addHelpText("after", examples("domains check acme.test --watch --timeout 1h"))
    .action(run(check))

  domains
    .command("doctor <domain>")
    .description("name the mistake in each wrong record; exit 8 if there is one")
    .addHelpText("after", examples("domains doctor acme.test"))
    .action(run(doctor))

  domains
    .command("records <domain>")
    .description("show the DNS records that the zone needs")
    .option("--format <format>", "format of the output: bind, cloudflare, terraform or json")
    .addHelpText("after", examples("domains records acme.test --format bind > acme.zone"))
    .action(run(records))
}

const ZONE_FILE = "GET /v1/domains/{domain_id}/zonefile"
const FORMATS = ["bind", "cloudflare", "terraform"]

const records: Action<{ format?: string }> = async (context, { format }, named = "") => {
  const client = context.client()
  if (format !== undefined && ![...FORMATS, "json"].includes(format)) {
    throw usage(`--format: "${format}" is not one of ${FORMATS.join(", ")} and json`)
  }
  const params = { domain_id: await idOf(client, named) }
  if (format !== undefined && format !== "json") {
    await context.output.raw(
      (await client.send(ZONE_FILE, { params, query: { format } })) as Uint8Array,
    )
    return undefined
  }
  const { data } = await client.call("GET /v1/domains/{domain_id}", { params })
  if (format === "json") {
    await context.output.raw(`${JSON.stringify(data.dns_records, null, 2)}\n`)
  } else {
    await context.output.list(data.dns_records, recordColumns)
    await context.output.next(`belfry domains records ${data.domain} --format bind`)
  }
}
