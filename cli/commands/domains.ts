import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Domains that mail is sent from, and their DNS records. */
export function define(program: Command): void {
  const domains = program
    .command("domains")
    .description("sending domains and their DNS records")
    .addHelpText("after", examples("domains add acme.test", "domains check acme.test --watch"))

  domains
    .command("add <domain>")
    .description("add a domain, and tell which records its zone needs")
    .option("--receiving", "also receive mail for it (this server refuses it for now)")
    .option("--tracking <label>", "host of tracked links (this server refuses it for now)")
    .option("--return-path <label>", "host of the envelope sender (default: bounce)")
    .option("--selector <selector>", "of the DKIM key (default: svc1)")
    .option("--idempotency-key <key>", "the same key twice adds one domain")
    .addHelpText(
      "after",
      examples("domains add acme.test", "domains add acme.test --return-path mail"),
    )
    .action(lazily(async () => (await import("../domains")).add))

  domains
    .command("list")
    .description("the domains, newest first")
    .option("--status <status>", "pending, verified or failed")
    .option("--search <text>", "only with this text in the name")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("domains list --status pending"))
    .action(lazily(async () => (await import("../domains")).list))

  for (const [name, about] of [
    ["get", "one domain, by its name or id"],
    ["delete", "delete a domain; mail that still waits to be sent from it fails"],
  ] as const) {
    domains
      .command(`${name} <domain>`)
      .description(about)
      .addHelpText("after", examples(`domains ${name} acme.test${name === "get" ? "" : " --yes"}`))
      .action(lazily(async () => (await import("../domains"))[name === "get" ? "get" : "remove"]))
  }

  domains
    .command("update <domain>")
    .description("change what a domain is used for, and the names of its records")
    .option("--receiving <on|off>", "also receive mail for it (on is refused for now)")
    .option("--tracking <label>", "host of tracked links, or none (a host is refused for now)")
    .option("--return-path <label>", "host of the envelope sender")
    .addHelpText("after", examples("domains update acme.test --return-path mail"))
    .action(lazily(async () => (await import("../domains")).update))

  defineRecords(domains)
}

function defineRecords(domains: Command) {
  domains
    .command("check <domain>")
    .description("look its records up now, at every authoritative server")
    .option("--watch", "until it is verified: exit 1 when it failed, 75 at --timeout")
    .addHelpText("after", examples("domains check acme.test --watch --timeout 1h"))
    .action(lazily(async () => (await import("../domain-check")).check))

  domains
    .command("doctor <domain>")
    .description("name the mistake in each record that is not right; exit 8 if there is one")
    .addHelpText("after", examples("domains doctor acme.test"))
    .action(lazily(async () => (await import("../domain-check")).doctor))

  domains
    .command("records <domain>")
    .description("the records that its zone needs")
    .option("--format <format>", "bind, cloudflare, terraform or json")
    .addHelpText("after", examples("domains records acme.test --format bind > acme.zone"))
    .action(lazily(async () => (await import("../domains")).records))

  domains
    .command("rotate-dkim <domain>")
    .description("make another DKIM key; the old one signs until the new record is seen")
    .option("--selector <selector>", "of the new key (default: svc2, svc1 in turn)")
    .addHelpText("after", examples("domains rotate-dkim acme.test"))
    .action(lazily(async () => (await import("../domains")).rotateDkim))
}
