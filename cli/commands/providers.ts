import type { Command } from "commander"
import { LIMIT } from "../lib/flags"
import { examples, run, several } from "../lib/run"
import { get, list, remove, set, test, update } from "../providers"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** The providers that deliver the mail of the project. */
export function define(program: Command): void {
  const providers = program
    .command("providers")
    .description("manage the providers that deliver the project's mail")
    .addHelpText("after", examples("providers list"))

  defineSet(providers)

  providers
    .command("list")
    .description("list the providers of the project, newest first")
    .option("--kind <kind>", "show only this kind: email_provider, sms_provider or push_provider")
    .option(...LIMIT)
    .addHelpText("after", examples("providers list --kind email_provider"))
    .action(run(list))

  providers
    .command("get <id>")
    .description("show one provider, and the last 4 characters of its secrets")
    .addHelpText("after", examples(`providers get ${ID}`))
    .action(run(get))

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

  providers
    .command("test <id>")
    .description("log in at a provider, or send a mail with --to; success lets waiting mail go on")
    .option("--to <address>", "send a test mail to this address, from the project's default_from")
    .addHelpText(
      "after",
      examples(`providers test ${ID} --to ann@example.com`, "providers test instance"),
    )
    .action(run(test))

  providers
    .command("delete <id>")
    .description("delete a provider and its credentials")
    .addHelpText("after", examples(`providers delete ${ID} --yes`))
    .action(run(remove))
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
