import type { Command } from "commander"
import { examples, lazily } from "../action"
import type { Action } from "../context"
import type { Filters } from "../mailbox"
import { DATA_DIR, LIMIT, SINCE } from "../shared-flags"

/** The embedded mailbox: what arrived there instead of in the world. */
export function define(program: Command): void {
  const mailbox = program
    .command("mailbox")
    .description("read the mail that the embedded mailbox caught")
    .addHelpText("after", examples("mailbox list", "mailbox wait --to ann@mailbox.test"))
  defineReading(mailbox)

  mailbox
    .command("clear")
    .description("delete the project's mail from the mailbox")
    .option("--to <address>", "delete only mail to this address")
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
    .option("--system", "read the instance's own mail (invitations, resets) on its machine")
    .option(DATA_DIR[0], `with --system: ${DATA_DIR[1]}`)

function defineReading(mailbox: Command) {
  withSystem(mailbox.command("list"))
    .description("list the mail, newest first")
    .option("--to <address>", "show only mail to this address")
    .option("--from <address>", "show only mail from this address")
    .option("--search <text>", "show only mail that contains this text")
    .option(...SINCE)
    .option(...LIMIT)
    .addHelpText("after", examples("mailbox list --to ann@mailbox.test --since 1h"))
    .action(either("list"))

  withSystem(mailbox.command("get <id>"))
    .description("show one mail with headers, text and HTML")
    .addHelpText("after", examples("mailbox get 0199a1c2-0000-7000-8000-000000000001"))
    .action(either("get"))

  withSystem(mailbox.command("wait"))
    .description("wait for a mail and print it; exit 1 at --timeout (default: 30s)")
    .requiredOption("--to <address>", "recipient of the mail")
    .option("--from <address>", "sender of the mail")
    .option("--subject <text>", "text in the subject")
    .option(...SINCE)
    .addHelpText(
      "after",
      examples("mailbox wait --to ann@mailbox.test --subject Receipt --timeout 10s --json=id,text"),
    )
    .action(either("wait"))
}
