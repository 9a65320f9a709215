import type { Command } from "commander"
import { AFTER, EVENT, examples, lazily, ONLY_EVENT, SINCE, several } from "../action"

/** What happened in the project. */
export function define(program: Command): void {
  const events = program
    .command("events")
    .description("what happened in the project")
    .addHelpText("after", examples("events list --follow"))

  events
    .command("list")
    .description("the latest events, newest first")
    .option("--oldest", "oldest first, from the beginning of the feed")
    .option(...AFTER)
    .option(...SINCE)
    .option(EVENT, ONLY_EVENT, several)
    .option("--limit <number>", "how many (default: 25)")
    .option("--follow", "then print new events as they come, one a line")
    .addHelpText(
      "after",
      examples("events list --event email.bounced --since 1d", "events list --follow --ndjson"),
    )
    .action(lazily(async () => (await import("../events")).list))

  events
    .command("get <id>")
    .description("one event, as webhooks carry it")
    .addHelpText("after", examples("events get evt_0199a1c2-0000-7000-8000-000000000001"))
    .action(lazily(async () => (await import("../event-types")).get))

  events
    .command("types")
    .description("what can happen; with --json the fields and an example of each")
    .option("--category <category>", "only email, push or auth")
    .addHelpText("after", examples("events types --category email"))
    .action(lazily(async () => (await import("../event-types")).types))
}
