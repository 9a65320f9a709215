import type { Command } from "commander"
import { examples, lazily, several } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Who delivers the mail of the project. */
export function define(program: Command): void {
  const providers = program
    .command("providers")
    .description("providers that deliver the mail of the project")
    .addHelpText("after", examples("providers list"))

  defineSet(providers)

  providers
    .command("list")
    .description("the providers of the project, newest first")
    .option("--kind <kind>", "email_provider, sms_provider or push_provider")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("providers list --kind email_provider"))
    .action(lazily(async () => (await import("../providers")).list))

  providers
    .command("get <id>")
    .description("one provider; of its secrets the last four characters")
    .addHelpText("after", examples(`providers get ${ID}`))
    .action(lazily(async () => (await import("../providers")).get))

  withAccess(providers.command("update <id>"))
    .description("change credentials, order, name, pace or SPF, or switch it off and on")
    .option("--name <name>", "another name")
    .option("--priority <number>", "the lowest is asked first")
    .option("--enabled <on|off>", "whether it is asked at all")
    .option("--max-per-second <number>", "messages a second; none: as many as go")
    .option(
      "--spf <mechanism>",
      "what SPF records of its senders need; none: by the provider",
      several,
    )
    .addHelpText(
      "after",
      examples(
        `providers update ${ID} --priority 10`,
        `providers update ${ID} --secret-stdin < secret`,
      ),
    )
    .action(lazily(async () => (await import("../providers")).update))

  providers
    .command("test <id>")
    .description("log in at a provider, or send a mail through it; success lets waiting mail go on")
    .option("--to <address>", "send a mail there, from the project's default_from")
    .addHelpText(
      "after",
      examples(`providers test ${ID} --to ann@example.com`, "providers test instance"),
    )
    .action(lazily(async () => (await import("../providers")).test))

  providers
    .command("delete <id>")
    .description("forget a provider and its credentials")
    .addHelpText("after", examples(`providers delete ${ID} --yes`))
    .action(lazily(async () => (await import("../providers")).remove))
}

const SMTP = "providers set smtp --host smtp.example.com --username apikey --secret-stdin < secret"
const SES = "providers set ses --region eu-west-1 --access-key-id AKIA… --secret-stdin < secret"

function defineSet(providers: Command) {
  withAccess(providers.command("set <provider>"))
    .description("configure smtp, ses, direct or mailbox; the same name replaces")
    .option("--name <name>", "its name (default: that of the provider)")
    .option("--priority <number>", "the lowest is asked first (default: 100)")
    .option("--max-per-second <number>", "messages a second")
    .option("--spf <mechanism>", "what SPF records of its senders need; may be repeated", several)
    .addHelpText("after", examples(SMTP, SES))
    .action(lazily(async () => (await import("../providers")).set))
}

const withAccess = (command: Command) =>
  command
    .option("--host <host>", "smtp: the relay")
    .option("--port <number>", "smtp: its port (default: 587)")
    .option("--username <name>", "smtp: the user name for the login")
    .option("--password <secret>", "smtp: better by --secret-stdin, where no history keeps it")
    .option("--tls <mode>", "smtp: starttls, implicit or none (default: starttls)")
    .option("--region <region>", "ses: eu-west-1 …")
    .option("--access-key-id <id>", "ses: the key's id")
    .option("--secret-access-key <secret>", "ses: better by --secret-stdin")
    .option("--configuration-set <name>", "ses: whose events come back")
    .option("--secret-stdin", "read the password or secret key from stdin; else it is asked for")
