import type { Command } from "commander"
import { examples, lazily, SINCE } from "../action"
import type { Action } from "../context"
import type { Filters } from "../mailbox"

/** The embedded mailbox: what arrived there instead of in the world. */
export function define(program: Command): void {
  const mailbox = program
    .command("mailbox")
    .description("mail that the embedded mailbox caught")
    .addHelpText("after", examples("mailbox list", "mailbox wait --to ann@mailbox.test"))
  defineReading(mailbox)

  mailbox
    .command("clear")
    .description("remove the mails of the project from the mailbox")
    .option("--to <address>", "only those to this address")
    .addHelpText("after", examples("mailbox clear --to ann@mailbox.test --yes"))
    .action(lazily(async () => (await import("../mailbox")).clear))
}

/** The project's mail, or with --system that of the instance, which only this machine may read. */
const either = (name: "list" | "get" | "wait") =>
  lazily(async (): Promise<Action<Filters & { system?: boolean }>> => {
    const ours = await import("../mailbox")
    return async (context, options, ...words) => {
      if (!options.system) return ours[name](context, options, ...words)
      const system = await import("../local/system-mailbox")
      return system[name](context, options, ...words)
    }
  })

const withSystem = (command: Command): Command =>
  command
    .option("--system", "mail of the instance itself: invitations, resets; on its machine only")
    .option("--data-dir <dir>", "with --system: the folder of the instance")

function defineReading(mailbox: Command) {
  withSystem(mailbox.command("list"))
    .description("the mails, newest first")
    .option("--to <address>", "only to this address")
    .option("--from <address>", "only from this address")
    .option("--search <text>", "only with this text")
    .option(...SINCE)
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("mailbox list --to ann@mailbox.test --since 1h"))
    .action(either("list"))

  withSystem(mailbox.command("get <id>"))
    .description("one mail with headers, text and HTML")
    .addHelpText("after", examples("mailbox get 0199a1c2-0000-7000-8000-000000000001"))
    .action(either("get"))

  withSystem(mailbox.command("wait"))
    .description(
      "wait until a mail is there and print it; exit 1 when --timeout (30s) passes first",
    )
    .requiredOption("--to <address>", "to this address")
    .option("--from <address>", "from this address")
    .option("--subject <text>", "with this text in the subject")
    .option(...SINCE)
    .addHelpText(
      "after",
      examples("mailbox wait --to ann@mailbox.test --subject Receipt --timeout 10s --json=id,text"),
    )
    .action(either("wait"))
}
