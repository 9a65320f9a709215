import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Work that waits: of the project, and of the whole instance for its operator. */
export function define(program: Command): void {
  const queue = program
    .command("queue")
    .description("show, pause and resume waiting work")
    .addHelpText("after", examples("queue list"))

  queue
    .command("list")
    .description("list the project's open work by queue, state, reason and domain")
    .addHelpText("after", examples("queue list"))
    .action(lazily(async () => (await import("../queue")).list))

  queue
    .command("domains")
    .description("list the project's waiting mail by recipient domain")
    .addHelpText(
      "after",
      examples("queue domains", "queue domains --json=domain,paused_until,reason"),
    )
    .action(lazily(async () => (await import("../queue-control")).domains))

  queue
    .command("instance")
    .description("list all queues of the instance and their pauses (operators)")
    .addHelpText("after", examples("queue instance"))
    .action(lazily(async () => (await import("../queue-control")).instance))

  queue
    .command("pause [queue]")
    .description("pause a queue, or the mail to one domain (operators)")
    .option("--domain <domain>", "pause only the mail to this domain")
    .addHelpText("after", examples("queue pause email", "queue pause --domain example.com"))
    .action(lazily(async () => (await import("../queue-control")).pause))

  queue
    .command("resume [queue]")
    .description("resume a paused queue or domain (operators)")
    .option("--domain <domain>", "resume the mail to this domain")
    .addHelpText("after", examples("queue resume email", "queue resume --domain example.com"))
    .action(lazily(async () => (await import("../queue-control")).resume))
}
