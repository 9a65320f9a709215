import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Work that waits: of the project, and of the whole instance for its operator. */
export function define(program: Command): void {
  const queue = program
    .command("queue")
    .description("waiting work, with its reason and its next time")
    .addHelpText("after", examples("queue list"))

  queue
    .command("list")
    .description("the project's open work by queue, state and reason, and mail by domain")
    .addHelpText("after", examples("queue list"))
    .action(lazily(async () => (await import("../queue")).list))

  queue
    .command("domains")
    .description("the project's mail that waits, by the recipients' domain")
    .addHelpText(
      "after",
      examples("queue domains", "queue domains --json=domain,paused_until,reason"),
    )
    .action(lazily(async () => (await import("../queue-control")).domains))

  queue
    .command("instance")
    .description("every queue of the instance, and what is paused (operators)")
    .addHelpText("after", examples("queue instance"))
    .action(lazily(async () => (await import("../queue-control")).instance))

  queue
    .command("pause [queue]")
    .description("begin nothing more of a queue, or of what goes to one domain (operators)")
    .option("--domain <domain>", "only the mail to this domain")
    .addHelpText("after", examples("queue pause email", "queue pause --domain example.com"))
    .action(lazily(async () => (await import("../queue-control")).pause))

  queue
    .command("resume [queue]")
    .description("go on with what was paused (operators)")
    .option("--domain <domain>", "the mail to this domain")
    .addHelpText("after", examples("queue resume email", "queue resume --domain example.com"))
    .action(lazily(async () => (await import("../queue-control")).resume))
}
