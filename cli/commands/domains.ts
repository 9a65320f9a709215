import type { Command } from "commander"
import { examples, lazily } from "../action"
import { IDEMPOTENCY_KEY, LIMIT } from "../shared-flags"

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
    .action(lazily(async () => (await import("../domains")).add))

  domains
    .command("list")
    .description("list the domains, newest first")
    .option("--status <status>", "show only this status: pending, verified or failed")
    .option("--search <text>", "show only names that contain this text")
    .option(...LIMIT)
    .addHelpText("after", examples("domains list --status pending"))
    .action(lazily(async () => (await import("../domains")).list))

  for (const [name, about] of [
    ["get", "show one domain, by name or id"],
    ["delete", "delete a domain; mail from it that still waits fails"],
  ] as const) {
    domains
      .command(`${name} <domain>`)
      .description(about)
      .addHelpText("after", examples(`domains ${name} acme.test${name === "get" ? "" : " --yes"}`))
      .action(lazily(async () => (await import("../domains"))[name === "get" ? "get" : "remove"]))
  }

  domains
    .command("update <domain>")
    .description("change the use of a domain, or the names of its records")
    .option("--receiving <on|off>", "also receive mail (`on` is not supported yet)")
    .option("--tracking <label>", "host label of tracked links (only `none` works yet)")
    .option("--return-path <label>", "host label of the envelope sender")
    .addHelpText("after", examples("domains update acme.test --return-path mail"))
    .action(lazily(async () => (await import("../domains")).update))

  defineRecords(domains)
}

function defineRecords(domains: Command) {
  domains
    .command("check <domain>")
    .description("check the DNS records now, at every authoritative server")
    .option("--watch", "repeat until it is verified; exit 1 if it fails, 75 at --timeout")
    .addHelpText("after", examples("domains check acme.test --watch --timeout 1h"))
    .action(lazily(async () => (await import("../domain-check")).check))

  domains
    .command("doctor <domain>")
    .description("name the mistake in each wrong record; exit 8 if there is one")
    .addHelpText("after", examples("domains doctor acme.test"))
    .action(lazily(async () => (await import("../domain-check")).doctor))

  domains
    .command("records <domain>")
    .description("show the DNS records that the zone needs")
    .option("--format <format>", "format of the output: bind, cloudflare, terraform or json")
    .addHelpText("after", examples("domains records acme.test --format bind > acme.zone"))
    .action(lazily(async () => (await import("../domains")).records))

  domains
    .command("rotate-dkim <domain>")
    .description("create a new DKIM key; the old key signs until the new record is found")
    .option("--selector <selector>", "selector of the new key (default: svc2, then svc1)")
    .addHelpText("after", examples("domains rotate-dkim acme.test"))
    .action(lazily(async () => (await import("../domains")).rotateDkim))
}
