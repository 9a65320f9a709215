import type { Command } from "commander"
import {
  EVENT,
  HEADER,
  IDEMPOTENCY_KEY,
  LIMIT,
  METADATA,
  ONLY_EVENT,
  SINCE,
  UNTIL,
} from "../lib/flags"
import { examples, run, several } from "../lib/run"
import { trigger } from "./events"
import { deliveries, replay, retry, stats } from "./webhook-deliveries"
import {
  create,
  disable,
  enable,
  get,
  list,
  pause,
  remove,
  rotate,
  test,
  update,
} from "./webhook-endpoints"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const DELIVERY = "0199a1c2-0000-7000-8000-000000000002"
const URL = "https://example.com/hooks"
const SUBSCRIBED = "event type to receive, a group (email.*) or *; may be repeated"

/** Endpoints that receive events. */
export function define(program: Command): void {
  const webhooks = program
    .command("webhooks")
    .description("manage endpoints that receive events")
    .addHelpText("after", examples("webhooks list"))
  defineEndpoints(webhooks)
  defineSwitches(webhooks)
  defineDeliveries(webhooks)
  defineTrigger(program)
}

/** What an endpoint is, for a new one and for a change. */
const withFields = (command: Command): Command =>
  command
    .option("--description <text>", "description; none removes it")
    .option(...HEADER, several)
    .option("--signature <format>", "headers of the signature: standard, legacy or both")
    .option("--max-attempts <number>", "maximum attempts of each delivery, 1 to 10")
    .option("--intervals <spans>", "pauses between the attempts, for example 60,5m,1h")
    .option("--rate-limit <number>", "maximum deliveries per second, or none for no limit")
    .option("--filter <rule>", "JSON rule that selects events; none removes it")
    .option("--transform-file <file>", "Handlebars template of the JSON body; none removes it")
    .option(...METADATA, several)

function defineEndpoints(webhooks: Command): void {
  withFields(
    webhooks
      .command("create <url>")
      .description("create an endpoint; its signing secret is shown only once")
      .requiredOption(EVENT, SUBSCRIBED, several),
  )
    .option("--secret-file <file>", "file with your own signing secret (whsec_…), or - for stdin")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      examples(
        `webhooks create ${URL} --event 'email.*' --event webhook.disabled`,
        `webhooks create ${URL} --event '*' \\\n      --filter '{"field":"data.tags","op":"contains","value":"shop"}'`,
      ),
    )
    .action(run(create))

  webhooks
    .command("list")
    .description("list the endpoints, newest first")
    .option("--status <status>", "show only this status: active or disabled")
    .option(...LIMIT)
    .addHelpText("after", examples("webhooks list --status disabled"))
    .action(run(list))

  webhooks
    .command("get <id>")
    .description("show one endpoint")
    .addHelpText("after", examples(`webhooks get ${ID}`))
    .action(run(get))

  withFields(
    webhooks
      .command("update <id>")
      .description("change an endpoint; values without a flag stay")
      .option("--endpoint <url>", "new URL")
      .option(EVENT, SUBSCRIBED, several),
  )
    .option("--enabled <on|off>", "on activates the endpoint, off pauses it")
    .addHelpText("after", examples(`webhooks update ${ID} --event 'email.*' --rate-limit 10`))
    .action(run(update))

  webhooks
    .command("delete <id>")
    .description("delete an endpoint and its open deliveries")
    .addHelpText("after", examples(`webhooks delete ${ID} --yes`))
    .action(run(remove))
}

function defineSwitches(webhooks: Command): void {
  webhooks
    .command("enable <id>")
    .description("make an endpoint active again")
    .option("--replay", "also send the events that were held")
    .addHelpText("after", examples(`webhooks enable ${ID} --replay`))
    .action(run(enable))

  for (const [name, about] of [
    ["disable", "disable an endpoint: its events are held for 7 days"],
    ["pause", "pause an endpoint: its events are held for 7 days"],
  ] as const) {
    webhooks
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`webhooks ${name} ${ID}`))
      .action(run({ disable, pause }[name]))
  }

  webhooks
    .command("rotate <id>")
    .description("create a new signing secret; the old one works for 24 more hours")
    .option("--now", "stop the old secret now")
    .addHelpText("after", examples(`webhooks rotate ${ID}`, `webhooks rotate ${ID} --now --yes`))
    .action(run(rotate))

  webhooks
    .command("test <id>")
    .description("send an example event now, and show the answer; exit 1 if it was refused")
    .option(EVENT, "type of the event (default: webhook.test)")
    .addHelpText("after", examples(`webhooks test ${ID} --event email.bounced`))
    .action(run(test))
}

function defineDeliveries(webhooks: Command): void {
  webhooks
    .command("deliveries <id> [delivery]")
    .description("list the deliveries of an endpoint, newest first, or show one")
    .option(
      "--status <status>",
      "show only this status: pending, failed, success, exhausted or held",
    )
    .option(EVENT, "show only events of this type")
    .option("--event-id <id>", "show only deliveries of this event")
    .option(...SINCE)
    .option(...LIMIT)
    .addHelpText(
      "after",
      examples(
        `webhooks deliveries ${ID} --status exhausted --since 1d`,
        `webhooks deliveries ${ID} ${DELIVERY}`,
      ),
    )
    .action(run(deliveries))

  webhooks
    .command("retry <id> [delivery]")
    .description("attempt one delivery again, or all failed deliveries")
    .option("--all", "retry all failed deliveries of the time range")
    .option(
      "--status <status>",
      "with --all: retry only status failed or exhausted; may be repeated",
      several,
    )
    .option(SINCE[0], `with --all: ${SINCE[1]}`)
    .option(UNTIL[0], `with --all: ${UNTIL[1]}`)
    .option(EVENT, `with --all: ${ONLY_EVENT}`, several)
    .addHelpText(
      "after",
      examples(`webhooks retry ${ID} ${DELIVERY}`, `webhooks retry ${ID} --all --since 1d`),
    )
    .action(run(retry))

  webhooks
    .command("replay <id>")
    .description("send the held, the failed or all events of a time range again")
    .requiredOption(...SINCE)
    .option(...UNTIL)
    .option(EVENT, ONLY_EVENT, several)
    .option("--status <status>", "events to send: held, failed or all (default: held)")
    .addHelpText(
      "after",
      examples(`webhooks replay ${ID} --since 7d`, `webhooks replay ${ID} --since 1h --status all`),
    )
    .action(run(replay))

  webhooks
    .command("stats <id>")
    .description("show the results of the deliveries of the last day or week")
    .option("--window <window>", "time range: 24h or 7d (default: 24h)")
    .addHelpText("after", examples(`webhooks stats ${ID} --window 7d`))
    .action(run(stats))
}

function defineTrigger(program: Command): void {
  program
    .command("trigger <type>")
    .description("create a simulated event to test receivers")
    .option("--override <pair>", "field to change, as k=v, a.b=v or JSON; may be repeated", several)
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      examples(
        "trigger email.bounced --override recipient_email=kim@example.com",
        "trigger sms.sent",
      ),
    )
    .action(run(trigger))
}
