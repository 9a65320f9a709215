import type { Command } from "commander"
import { EVENT, examples, lazily, ONLY_EVENT, SINCE, several, UNTIL } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const DELIVERY = "0199a1c2-0000-7000-8000-000000000002"
const URL = "https://example.com/hooks"
const SUBSCRIBED = "a type of event, email.*, or *; may be repeated"

/** Endpoints that are told what happens. */
export function define(program: Command): void {
  const webhooks = program
    .command("webhooks")
    .description("endpoints that receive events")
    .addHelpText("after", examples("webhooks list"))
  defineEndpoints(webhooks)
  defineSwitches(webhooks)
  defineDeliveries(webhooks)
  defineTrigger(program)
}

/** What an endpoint is, for a new one and for a change. */
const withFields = (command: Command): Command =>
  command
    .option("--description <text>", "what it is for; none takes it away")
    .option("--header <header>", "'X-Name: value', sent along; may be repeated", several)
    .option("--signature <format>", "of the signature: standard, legacy or both")
    .option("--max-attempts <number>", "tries of each delivery, 1 to 10")
    .option("--intervals <spans>", "waits between them: 60,5m,1h")
    .option("--rate-limit <number>", "deliveries a second; none for as many as come")
    .option("--filter <rule>", "a rule over the envelope as JSON; none takes it away")
    .option("--transform-file <file>", "Handlebars text that gives the JSON body, or -; none")
    .option("--metadata <pair>", "k=v or a JSON object; may be repeated", several)

function defineEndpoints(webhooks: Command): void {
  withFields(
    webhooks
      .command("create <url>")
      .description("make an endpoint; its signing secret is shown this once")
      .requiredOption(EVENT, SUBSCRIBED, several),
  )
    .option("--secret-file <file>", "a secret of your own (whsec_…), or - for stdin")
    .option("--idempotency-key <key>", "the same key twice makes one endpoint")
    .addHelpText(
      "after",
      examples(
        `webhooks create ${URL} --event 'email.*' --event webhook.disabled`,
        `webhooks create ${URL} --event '*' \\\n      --filter '{"field":"data.tags","op":"contains","value":"shop"}'`,
      ),
    )
    .action(lazily(async () => (await import("../webhooks/endpoints")).create))

  webhooks
    .command("list")
    .description("the endpoints, newest first")
    .option("--status <status>", "active or disabled")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("webhooks list --status disabled"))
    .action(lazily(async () => (await import("../webhooks/endpoints")).list))

  webhooks
    .command("get <id>")
    .description("one endpoint")
    .addHelpText("after", examples(`webhooks get ${ID}`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).get))

  withFields(
    webhooks
      .command("update <id>")
      .description("change an endpoint; what is not named stays")
      .option("--endpoint <url>", "another address")
      .option(EVENT, SUBSCRIBED, several),
  )
    .option("--enabled <on|off>", "off pauses, on activates")
    .addHelpText("after", examples(`webhooks update ${ID} --event 'email.*' --rate-limit 10`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).update))

  webhooks
    .command("delete <id>")
    .description("delete an endpoint; what it has not delivered ends")
    .addHelpText("after", examples(`webhooks delete ${ID} --yes`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).remove))
}

function defineSwitches(webhooks: Command): void {
  webhooks
    .command("enable <id>")
    .description("make an endpoint active again")
    .option("--replay", "and send it what was held meanwhile")
    .addHelpText("after", examples(`webhooks enable ${ID} --replay`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).enable))

  for (const [name, about] of [
    ["disable", "disable an endpoint: its events are held for 7 days"],
    ["pause", "pause an endpoint: its events are held for 7 days"],
  ] as const) {
    webhooks
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`webhooks ${name} ${ID}`))
      .action(lazily(async () => (await import("../webhooks/endpoints"))[name]))
  }

  webhooks
    .command("rotate <id>")
    .description("make a new signing secret; the one before counts for 24 more hours")
    .option("--now", "the one before counts no more")
    .addHelpText("after", examples(`webhooks rotate ${ID}`, `webhooks rotate ${ID} --now --yes`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).rotate))

  webhooks
    .command("test <id>")
    .description("send an example event now and tell the answer; exit 1 when it was not taken")
    .option(EVENT, "the type of the event (default: webhook.test)")
    .addHelpText("after", examples(`webhooks test ${ID} --event email.bounced`))
    .action(lazily(async () => (await import("../webhooks/endpoints")).test))
}

function defineDeliveries(webhooks: Command): void {
  webhooks
    .command("deliveries <id> [delivery]")
    .description("what an endpoint was sent, newest first; or one delivery with its answer")
    .option("--status <status>", "pending, failed, success, exhausted or held")
    .option(EVENT, "only this type of event")
    .option("--event-id <id>", "only the deliveries of this event")
    .option(...SINCE)
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText(
      "after",
      examples(
        `webhooks deliveries ${ID} --status exhausted --since 1d`,
        `webhooks deliveries ${ID} ${DELIVERY}`,
      ),
    )
    .action(lazily(async () => (await import("../webhooks/deliveries")).deliveries))

  webhooks
    .command("retry <id> [delivery]")
    .description("one more attempt of one delivery, or of all that failed")
    .option("--all", "of each that failed, within the span")
    .option("--status <status>", "with --all: failed or exhausted; may be repeated", several)
    .option(SINCE[0], `with --all: ${SINCE[1]}`)
    .option(UNTIL[0], `with --all: ${UNTIL[1]}`)
    .option(EVENT, `with --all: ${ONLY_EVENT}`, several)
    .addHelpText(
      "after",
      examples(`webhooks retry ${ID} ${DELIVERY}`, `webhooks retry ${ID} --all --since 1d`),
    )
    .action(lazily(async () => (await import("../webhooks/deliveries")).retry))

  webhooks
    .command("replay <id>")
    .description("send events again: those held, those that failed, or all")
    .requiredOption(...SINCE)
    .option(...UNTIL)
    .option(EVENT, ONLY_EVENT, several)
    .option("--status <status>", "held, failed or all (default: held)")
    .addHelpText(
      "after",
      examples(`webhooks replay ${ID} --since 7d`, `webhooks replay ${ID} --since 1h --status all`),
    )
    .action(lazily(async () => (await import("../webhooks/deliveries")).replay))

  webhooks
    .command("stats <id>")
    .description("how the deliveries of the last day or week went")
    .option("--window <window>", "24h or 7d (default: 24h)")
    .addHelpText("after", examples(`webhooks stats ${ID} --window 7d`))
    .action(lazily(async () => (await import("../webhooks/deliveries")).stats))
}

function defineTrigger(program: Command): void {
  program
    .command("trigger <type>")
    .description("make a simulated event, to try receivers with")
    .option("--override <pair>", "k=v or JSON over the example; dots lead inside", several)
    .option("--idempotency-key <key>", "the same key twice makes one event")
    .addHelpText(
      "after",
      examples(
        "trigger email.bounced --override recipient_email=kim@example.com",
        "trigger sms.sent",
      ),
    )
    .action(lazily(async () => (await import("../trigger")).trigger))
}
