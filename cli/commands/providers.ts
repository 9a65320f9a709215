import type { Command } from "commander"
import { asks, groupOf, ID, row } from "../lib/resource"
import { examples, run, several } from "../lib/run"
import { ago, idColumn, wide } from "../lib/table"
import { KIND, set, shownProvider, statusOf, update } from "../providers"

const params = { kind: KIND }

export const providerRows = [
  row("list", "GET /v1/providers", {
    example: "--kind email_provider",
    columns: {
      ID: idColumn("provider"),
      PROVIDER: "provider",
      NAME: wide(({ name }) => name),
      ORDER: "priority",
      STATUS: {
        cell: statusOf,
        paint: (text, config, paint) =>
          statusOf(config) === "active" ? paint.green(text) : paint.red(text),
      },
      "LAST ERROR": wide(({ last_error }) => last_error),
      "NEXT TRY": ago(({ next_probe_at }) => next_probe_at),
      AGE: ago(({ created_at }) => created_at),
    },
  }),
  row("get <id>", "GET /v1/providers/{kind}/config/{config_id}", { params, shown: shownProvider }),
  row("test <id>", "POST /v1/providers/{kind}/config/{config_id}/test", {
    about: "log in at a provider, or send a mail with --to; success lets waiting mail go on",
    params,
    example: "--to ann@example.com",
    note: "`providers test instance` tests the provider of the instance itself.",
    flags: { to: "send a test mail to this address, from the project's default_from" },
    done: ({ detail, duration_ms }) => `${detail} (${duration_ms} ms)`,
  }),
  row("delete <id>", "DELETE /v1/providers/{kind}/config/{config_id}", {
    params,
    example: "--yes",
    confirm: asks(
      (id) =>
        `Provider ${id} and its credentials will be deleted. The next provider delivers the mail.`,
      "delete",
    ),
    done: ({ id }) => `deleted ${id}`,
  }),
]

/** The providers that deliver the mail of the project. */
export function define(program: Command): void {
  const providers = groupOf(program, "providers")
  defineSet(providers)

  withAccess(providers.command("update <id>"))
    .description("change the settings or credentials of a provider, or switch it on or off")
    .option("--name <name>", "new name")
    .option("--priority <number>", "order of use: the lowest number is first")
    .option("--enabled <on|off>", "switch the provider on or off")
    .option("--max-per-second <number>", "maximum messages per second, or none for no limit")
    .option(
      "--spf <mechanism>",
      "mechanism that SPF records need, or none; may be repeated",
      several,
    )
    .addHelpText(
      "after",
      examples(
        `providers update ${ID} --priority 10`,
        `providers update ${ID} --secret-stdin < secret`,
      ),
    )
    .action(run(update))
}

const SMTP = "providers set smtp --host smtp.example.com --username apikey --secret-stdin < secret"
const SES = "providers set ses --region eu-west-1 --access-key-id AKIA… --secret-stdin < secret"

function defineSet(providers: Command) {
  withAccess(providers.command("set <provider>"))
    .description("configure smtp, ses, direct or mailbox; an existing name is replaced")
    .option("--name <name>", "name (default: the provider, for example smtp)")
    .option("--priority <number>", "order of use: the lowest number is first (default: 100)")
    .option("--max-per-second <number>", "maximum messages per second (default: no limit)")
    .option("--spf <mechanism>", "mechanism that SPF records need; may be repeated", several)
    .addHelpText("after", examples(SMTP, SES))
    .action(run(set))
}

const withAccess = (command: Command) =>
  command
    .option("--host <host>", "smtp: host name of the relay")
    .option("--port <number>", "smtp: port of the relay (default: 587)")
    .option("--username <name>", "smtp: user name")
    .option("--password <secret>", "smtp: password; safer with --secret-stdin")
    .option("--tls <mode>", "smtp: starttls, implicit or none (default: starttls)")
    .option("--region <region>", "ses: AWS region, for example eu-west-1")
    .option("--access-key-id <id>", "ses: id of the access key")
    .option("--secret-access-key <secret>", "ses: secret access key; safer with --secret-stdin")
    .option("--configuration-set <name>", "ses: configuration set that publishes the events")
    .option("--secret-stdin", "read the password or secret key from stdin (default: ask for it)")
