import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { AFTER, EVENT, LIMIT, ONLY_EVENT, SINCE } from "../shared-flags"

/** What happened in the project. */
export function define(program: Command): void {
  const events = program
    .command("events")
    .description("list and follow the events of the project")
    .addHelpText("after", examples("events list --follow"))

  events
    .command("list")
    .description("list the latest events, newest first")
    .option("--oldest", "list the oldest events first, from the beginning of the feed")
    .option(...AFTER)
    .option(...SINCE)
    .option(EVENT, ONLY_EVENT, several)
    .option(...LIMIT)
    .option("--follow", "then print new events as they arrive, one per line")
    .addHelpText(
      "after",
      examples("events list --event email.bounced --since 1d", "events list --follow --ndjson"),
    )
    .action(lazily(async () => (await import("../events")).list))

  events
    .command("get <id>")
    .description("show one event in the form that webhooks carry")
    .addHelpText("after", examples("events get evt_0199a1c2-0000-7000-8000-000000000001"))
    .action(lazily(async () => (await import("../event-types")).get))

  events
    .command("types")
    .description("list the event types; --json adds their fields and examples")
    .option("--category <category>", "show only this category: email, push or auth")
    .addHelpText("after", examples("events types --category email"))
    .action(lazily(async () => (await import("../event-types")).types))
}
