import type { Command } from "commander"
import { examples, lazily } from "../action"

/** The embedded mailbox: what arrived there instead of in the world. */
export function define(program: Command): void {
  const mailbox = program
    .command("mailbox")
    .description("mail that the embedded mailbox caught")
    .addHelpText("after", examples("mailbox list", "mailbox wait --to ann@mailbox.test"))

  mailbox
    .command("list")
    .description("the mails, newest first")
    .option("--to <address>", "only to this address")
    .option("--from <address>", "only from this address")
    .option("--search <text>", "only with this text")
    .option("--since <when>", "only after a time, or a span back: 10m")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("mailbox list --to ann@mailbox.test --since 1h"))
    .action(lazily(async () => (await import("../mailbox")).list))

  mailbox
    .command("get <id>")
    .description("one mail with headers, text and HTML")
    .addHelpText("after", examples("mailbox get 0199a1c2-0000-7000-8000-000000000001"))
    .action(lazily(async () => (await import("../mailbox")).get))

  mailbox
    .command("wait")
    .description(
      "wait until a mail is there and print it; exit 1 when --timeout (30s) passes first",
    )
    .requiredOption("--to <address>", "to this address")
    .option("--from <address>", "from this address")
    .option("--subject <text>", "with this text in the subject")
    .option("--since <when>", "only after a time, or a span back: 10m")
    .addHelpText(
      "after",
      examples("mailbox wait --to ann@mailbox.test --subject Receipt --timeout 10s --json=id,text"),
    )
    .action(lazily(async () => (await import("../mailbox")).wait))

  mailbox
    .command("clear")
    .description("remove the mails of the project from the mailbox")
    .option("--to <address>", "only those to this address")
    .addHelpText("after", examples("mailbox clear --to ann@mailbox.test --yes"))
    .action(lazily(async () => (await import("../mailbox")).clear))
}
