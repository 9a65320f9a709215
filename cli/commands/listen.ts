import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { AFTER, EVENT, LIMIT, ONLY_EVENT, SINCE } from "../shared-flags"

/** What happens in the project and at its API, as it happens. */
export function define(program: Command): void {
  defineListen(program)
  defineEventsTail(groupOf(program, "events", "list and follow the events of the project"))
  defineLogs(program)
  defineVerify(groupOf(program, "webhooks", "manage endpoints that receive events"))
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
    .option("--forward-to <url>", "URL of the receiver, for example localhost:3000/hooks")
    .option(EVENT, ONLY_EVENT, several)
    .option(...AFTER)
    .option("--print-secret", "print the signing secret of this machine, and forward nothing")
    .option("--skip-verify", "accept any TLS certificate of the receiver")
    .option("--limit <number>", "end after this number of deliveries")
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
    .description("follow events without a gap, until Ctrl-C")
    .option(...AFTER)
    .option(...SINCE)
    .option(EVENT, ONLY_EVENT, several)
    .option("--limit <number>", "end after this number of events")
    .addHelpText("after", examples("events tail", "events tail --event email.bounced | jq .data"))
    .action(lazily(async () => (await import("../events-tail")).tail))
}

function defineLogs(program: Command): void {
  const logs = program
    .command("logs")
    .description("list and follow the API requests of the last days")
    .addHelpText("after", examples("logs tail --status 4xx"))
  const commands = [
    [
      "list",
      "list requests with their answers, newest first",
      LIMIT[1],
      "logs list --path /v1/emails",
    ],
    [
      "tail",
      "follow requests as they arrive, until Ctrl-C",
      "end after this number of requests",
      "logs tail",
    ],
  ] as const
  for (const [name, about, limit, example] of commands) {
    logs
      .command(name)
      .description(about)
      .option("--status <status>", "show only this status code or class: 404, 4xx")
      .option("--path <path>", "show only this path and the paths below it")
      .option("--request-id <id>", "show only the request with this id")
      .option("--key <id>", "show only requests with this API key")
      .option("--limit <number>", limit)
      .addHelpText("after", examples(example, `logs ${name} --status 5xx --json`))
      .action(lazily(async () => (await import("../logs"))[name]))
  }
}

function defineVerify(webhooks: Command): void {
  webhooks
    .command("verify <url>")
    .description("test your receiver with good and bad deliveries; exit 8 if one fails")
    .option(
      "--secret <secret>",
      "signing secret of the receiver (default: that of `belfry listen`)",
    )
    .option("--skip-verify", "accept any TLS certificate of the receiver")
    .addHelpText("after", examples("webhooks verify localhost:3000/hooks"))
    .action(lazily(async () => (await import("../local/verify/verify")).verify))
}
