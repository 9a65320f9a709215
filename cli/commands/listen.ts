import type { Command } from "commander"
import { AFTER, EVENT, examples, lazily, ONLY_EVENT, SINCE, several } from "../action"

/** What happens in the project and at its API, as it happens. */
export function define(program: Command): void {
  defineListen(program)
  defineEventsTail(groupOf(program, "events", "what happened in the project"))
  defineLogs(program)
  defineVerify(groupOf(program, "webhooks", "endpoints that receive events"))
}

/** Another file may have begun the group. */
const groupOf = (program: Command, name: string, about: string): Command =>
  program.commands.find((command) => command.name() === name) ??
  program
    .command(name)
    .description(about)
    .addHelpText("after", examples(`${name} --help`))

function defineListen(program: Command): void {
  program
    .command("listen")
    .description("forward webhooks to a receiver on this machine")
    .option("--forward-to <url>", "the receiver: localhost:3000/hooks")
    .option(EVENT, ONLY_EVENT, several)
    .option(...AFTER)
    .option("--print-secret", "only print the signing secret, which this machine keeps")
    .option("--skip-verify", "take whatever certificate an https receiver shows")
    .option("--limit <number>", "end after so many deliveries")
    .addHelpText(
      "after",
      examples(
        "listen --forward-to localhost:3000/hooks",
        "listen --forward-to localhost:3000/hooks --event email.delivered --event email.bounced",
        "listen --print-secret",
      ),
    )
    .action(lazily(async () => (await import("../listen/listen")).listen))
}

function defineEventsTail(events: Command): void {
  events
    .command("tail")
    .description("follow events as they come, without a gap, until Ctrl-C")
    .option(...AFTER)
    .option(...SINCE)
    .option(EVENT, ONLY_EVENT, several)
    .option("--limit <number>", "end after so many")
    .addHelpText("after", examples("events tail", "events tail --event email.bounced | jq .data"))
    .action(lazily(async () => (await import("../events-tail")).tail))
}

function defineLogs(program: Command): void {
  const logs = program
    .command("logs")
    .description("requests to the API of the last days, and their answers")
    .addHelpText("after", examples("logs tail --status 4xx"))
  const commands = [
    ["list", "newest first", "how many (default: 25)", "logs list --path /v1/emails"],
    ["tail", "follow them as they come, until Ctrl-C", "end after so many", "logs tail"],
  ] as const
  for (const [name, about, limit, example] of commands) {
    logs
      .command(name)
      .description(about)
      .option("--status <status>", "only this status, or a class: 4xx")
      .option("--path <path>", "only this path and those below it")
      .option("--request-id <id>", "only this request")
      .option("--key <id>", "only requests with this API key")
      .option("--limit <number>", limit)
      .addHelpText("after", examples(example, `logs ${name} --status 5xx --json`))
      .action(lazily(async () => (await import("../logs"))[name]))
  }
}

function defineVerify(webhooks: Command): void {
  webhooks
    .command("verify <url>")
    .description("try a receiver of yours with good and bad deliveries; exit 8 if some go wrong")
    .option("--secret <secret>", "what it knows: whsec_… (default: that of `belfry listen`)")
    .option("--skip-verify", "take whatever certificate it shows")
    .addHelpText("after", examples("webhooks verify localhost:3000/hooks"))
    .action(lazily(async () => (await import("../local/verify/verify")).verify))
}
