import { isIP } from "node:net"
import type { Command } from "commander"
import type { Action } from "../lib/context"
import {
  countLine,
  type DnsRecord,
  type Domain,
  pathOf,
  providerLine,
  recordColumns,
} from "../lib/dns-records"
import { usage } from "../lib/errors"
import { domain_fields } from "../lib/fields"
import { IDEMPOTENCY_KEY, LIMIT, optionWords } from "../lib/flags"
import { given, onOff } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import type { Deleted } from "../lib/records"
import { examples, run } from "../lib/run"
import { type Column, fields, idColumn, table } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age } from "../lib/time"
import { check, doctor } from "./domain-checks"

/** Domains that mail is sent from, and their DNS records. */
export function define(program: Command): void {
  const domains = program
    .command("domains")
    .description("manage sending domains and their DNS records")
    .addHelpText("after", examples("domains add acme.test", "domains check acme.test --watch"))

  domains
    .command("add <domain>")
    .description("add a domain, and show the DNS records that its zone needs")
    .option("--receiving", "also receive mail (not supported yet)")
    .option("--tracking <label>", "host label of tracked links (not supported yet)")
    .option("--return-path <label>", "host label of the envelope sender (default: bounce)")
    .option("--selector <selector>", "selector of the DKIM key (default: svc1)")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      examples("domains add acme.test", "domains add acme.test --return-path mail"),
    )
    .action(run(add))

  domains
    .command("list")
    .description("list the domains, newest first")
    .option("--status <status>", "show only this status: pending, verified or failed")
    .option("--search <text>", "show only names that contain this text")
    .option(...LIMIT)
    .addHelpText("after", examples("domains list --status pending"))
    .action(run(list))

  for (const [name, about] of [
    ["get", "show one domain, by name or id"],
    ["delete", "delete a domain; mail from it that still waits fails"],
  ] as const) {
    domains
      .command(`${name} <domain>`)
      .description(about)
      .addHelpText("after", examples(`domains ${name} acme.test${name === "get" ? "" : " --yes"}`))
      .action(run({ get, delete: remove }[name]))
  }

  domains
    .command("update <domain>")
    .description("change the use of a domain, or the names of its records")
    .option("--receiving <on|off>", "also receive mail (`on` is not supported yet)")
    .option("--tracking <label>", "host label of tracked links (only `none` works yet)")
    .option("--return-path <label>", "host label of the envelope sender")
    .addHelpText("after", examples("domains update acme.test --return-path mail"))
    .action(run(update))

  defineRecords(domains)
}

function defineRecords(domains: Command) {
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

  domains
    .command("rotate-dkim <domain>")
    .description("create a new DKIM key; the old key signs until the new record is found")
    .option("--selector <selector>", "selector of the new key (default: svc2, then svc1)")
    .addHelpText("after", examples("domains rotate-dkim acme.test"))
    .action(run(rotateDkim))
}

interface AddOptions {
  receiving?: boolean
  tracking?: string
  returnPath?: string
  selector?: string
  idempotencyKey?: string
}

export const add: Action<AddOptions> = async (context, options, domain = "") => {
  const { output, paint, terminal } = context
  output.promises(domain_fields)
  const body = {
    domain,
    ...(options.receiving && { receiving: true }),
    ...(options.tracking !== undefined && { tracking_subdomain: options.tracking }),
    ...(options.returnPath !== undefined && { return_path: options.returnPath }),
    ...(options.selector !== undefined && { dkim_selector: options.selector }),
  }
  const headers = options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : undefined
  const { data } = await context.client().post<Domain>("/v1/domains", body, headers)
  const human = () =>
    [
      `${paint.green("✓")} added ${data.domain}. Its zone needs these records:`,
      "",
      table(data.dns_records, recordColumns, terminal.width, paint),
      "",
      ...unreachable(data).map((line) => `${paint.yellow("!")} ${line}`),
      `Full values: belfry domains records ${data.domain} --format bind`,
    ].join("\n")
  await output.record(data, human)
  await output.next(`belfry domains check ${data.domain} --watch`)
  return undefined
}

/** A server that was not told its own name writes records that help nobody. */
function unreachable({ dns_records }: Domain): string[] {
  const host = dns_records.find(({ purpose }) => purpose === "return_path")?.value ?? ""
  if (host.includes(".") && isIP(host) === 0) return []
  return [`Other servers cannot find the host "${host}". Set domains.host on the server first.`]
}

const columns: Column<Domain>[] = [
  idColumn("domain"),
  { title: "DOMAIN", cell: ({ domain }) => domain, flexible: true },
  { title: "STATUS", cell: ({ status }) => status, paint: paintStatus },
  { title: "RECORDS", cell: countLine },
  { title: "CHECKED", cell: ({ last_checked_at }) => age(last_checked_at) || "never" },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

function paintStatus(text: string, { status }: Domain, paint: Paint): string {
  if (status === "verified") return paint.green(text)
  return status === "failed" ? paint.red(text) : paint.yellow(text)
}

interface ListOptions {
  status?: string
  search?: string
  limit?: string
}

export const list: Action<ListOptions> = async (context, { status, search, limit }) => {
  const query = { status, domain: search }
  const found = await listUpTo<Domain>(context.client(), "/v1/domains", query, limitOf(limit))
  await context.output.list(found.rows, columns)
  if (found.more) {
    const words = optionWords({ status, search, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry domains list${words}`)
  }
  return undefined
}

export const get: Action<object> = async (context, _, named = "") => {
  const client = context.client()
  const { data } = await client.get<Domain>(await pathOf(client, named))
  await context.output.record(data, () => shown(data, context.paint, context.terminal.width))
  return undefined
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

interface UpdateOptions {
  receiving?: string
  tracking?: string
  returnPath?: string
}

export const update: Action<UpdateOptions> = async (context, options, named = "") => {
  const { output, paint, terminal } = context
  output.promises(domain_fields)
  const { tracking } = options
  const body = given({
    receiving: onOff(options.receiving, "--receiving"),
    tracking_subdomain: tracking === "none" ? null : tracking,
    return_path: options.returnPath,
  })
  if (Object.keys(body).length === 0) {
    throw usage("nothing to change: give --receiving, --tracking or --return-path")
  }
  const client = context.client()
  const { data } = await client.patch<Domain>(await pathOf(client, named), body)
  await output.record(data, () => shown(data, paint, terminal.width))
  return undefined
}

export const remove: Action<object> = async (context, _, named = "") => {
  const { output, paint } = context
  output.promises(["id", "deleted"])
  const client = context.client()
  await confirm(context, `Waiting mail from ${named} will fail.`, "delete")
  const { data } = await client.remove<Deleted>(await pathOf(client, named))
  await output.record(data, () => `${paint.green("✓")} deleted ${named}`)
  return undefined
}

const FORMATS = ["bind", "cloudflare", "terraform"]

export const records: Action<{ format?: string }> = async (context, { format }, named = "") => {
  const client = context.client()
  if (format !== undefined && ![...FORMATS, "json"].includes(format)) {
    throw usage(`--format: "${format}" is not one of ${FORMATS.join(", ")} and json`)
  }
  const path = await pathOf(client, named)
  if (format !== undefined && format !== "json") {
    await context.output.raw(await client.bytes(`${path}/zonefile`, { format }))
    return undefined
  }
  const { data } = await client.get<Domain>(path)
  if (format === "json") {
    await context.output.raw(`${JSON.stringify(data.dns_records, null, 2)}\n`)
  } else {
    await context.output.list<DnsRecord>(data.dns_records, recordColumns)
    await context.output.next(`belfry domains records ${data.domain} --format bind`)
  }
  return undefined
}

export const rotateDkim: Action<{ selector?: string }> = async (
  context,
  { selector },
  named = "",
) => {
  const { output, paint, terminal } = context
  output.promises(domain_fields)
  const client = context.client()
  const body = selector === undefined ? {} : { selector }
  const { data } = await client.post<Domain>(`${await pathOf(client, named)}/rotate-dkim`, body)
  const keys = data.dns_records.filter(({ purpose }) => purpose === "dkim")
  const human = () =>
    [
      `${paint.green("✓")} created a new key for ${data.domain}. Add its record, and keep the old record:`,
      "",
      table(keys, recordColumns, terminal.width, paint),
    ].join("\n")
  await output.record(data, human)
  await output.next(`belfry domains records ${data.domain} --format bind`)
  return undefined
}
