import type { Components } from "../../src/client/components"
import { headers, metadata } from "../lib/body-flags"
import type { Context } from "../lib/context"
import { exits } from "../lib/errors"
import { flag } from "../lib/field-flags"
import { AFTER, EVENT, ONLY_EVENT } from "../lib/flags"
import { parsedObject, readText, wholeNumber } from "../lib/input"
import { write } from "../lib/output"
import type { ListWarning } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { deletes, own, type PlainFlags, row } from "../lib/resource"
import { later } from "../lib/run"
import { ago, type Columns, coloured, count, fields, idColumn, wide } from "../lib/table"
import { duration } from "../lib/time"
import { deliveryRows, startedJob } from "./deliveries"

type Webhook = Components["Webhook"]

export const webhookColumns: Columns<Webhook> = {
  ID: idColumn("webhook"),
  URL: wide(({ url }) => url),
  EVENTS: { ...wide(({ events }) => events.join(" "), "first"), spare: 3 },
  STATUS: { ...coloured(shortState, { active: "green" }, "red"), least: 12 },
  FAILED: count(({ consecutive_failures }) => consecutive_failures, 1),
  HELD: count(({ held_count }) => held_count),
  AGE: { cell: ago(({ created_at }) => created_at), spare: 2 },
}

const REASONS: Partial<Record<string, string>> = { circuit_breaker: "breaker", manual: "by hand" }

/** `off: breaker`: a table has little room. */
function shortState({ status, disabled_reason: reason }: Webhook): string {
  return reason ? `off: ${REASONS[reason] ?? reason}` : status
}

const stateOf = ({ status, disabled_reason }: Webhook): string =>
  disabled_reason ? `${status} (${disabled_reason})` : status

const webhookValues = (webhook: Webhook) => ({
  status: stateOf(webhook),
  disabled_reason: null,
  headers: Object.keys(webhook.headers ?? {}),
})

const switched = {
  done: (webhook: Webhook) => {
    const held = webhook.held_count > 0 ? `, ${webhook.held_count} held` : ""
    return `${webhook.id} is ${stateOf(webhook)}${held}`
  },
  next: ({ id, status, held_count }: Webhook) => {
    if (status !== "active") return `webhooks enable ${id} --replay`
    return held_count > 0 ? `webhooks replay ${id} --since 7d` : undefined
  },
}

const shownOnce = (secret: string) => `\n  ${secret}\n\nThe secret cannot be shown again.`

/** On stderr, so that what is printed as JSON stays as the API gave it. */
async function warn({ output, paint }: Context, answer: object): Promise<void> {
  const { data, warnings = [] } = answer as { data: object; warnings?: readonly ListWarning[] }
  if (output.form === "quiet") return
  const own = "warnings" in data ? (data.warnings as readonly ListWarning[]) : warnings
  for (const { webhook_id, message } of own) {
    const whose = webhook_id === undefined ? "" : ` ${webhook_id}`
    await write(process.stderr, `${paint.yellow(`warning${whose}:`)} ${message}\n`)
  }
}

const SUBSCRIBED = "event type to receive, a group (email.*) or *; may be repeated"

/** What an endpoint is, for a new one and for a change. `none` takes away what may be absent. */
const endpointFlags: PlainFlags = {
  events: SUBSCRIBED,
  description: "description; none removes it",
  header_format: "headers of the signature: standard, legacy or both",
  rate_limit: "maximum deliveries per second, or none for no limit",
  ...{
    headers,
    metadata,
    url: false,
    version: false,
    secret: false,
    status: false,
    enabled: false,
  },
  "retry_policy.max_attempts": flag(
    ["--max-attempts <number>", "maximum attempts of each delivery, 1 to 10"],
    wholeNumber,
  ),
  "retry_policy.intervals": flag(
    ["--intervals <spans>", "pauses between the attempts, for example 60,5m,1h"],
    (text, option) => text.split(",").map((one) => duration(one, option) / 1000),
  ),
  filter: flag(
    ["--filter <rule>", "JSON rule that selects events; none removes it"],
    (text, option) => (text === "none" ? null : parsedObject(text, option)),
  ),
  transform: flag(
    ["--transform-file <file>", "Handlebars template of the JSON body; none removes it"],
    (path, option) => (path === "none" ? null : readText(path, option)),
  ),
}

export const webhookRows = [
  row("create <url>", "POST /v1/webhooks", {
    about: "create an endpoint; its signing secret is shown only once",
    example: [
      "--event 'email.*' --event webhook.disabled",
      `--event '*' \\\n      --filter '{"field":"data.tags","op":"contains","value":"shop"}'`,
    ],
    flags: {
      ...endpointFlags,
      secret: flag(
        ["--secret-file <file>", "file with your own signing secret (whsec_…), or - for stdin"],
        async (path, option) => (await readText(path, option)).trim(),
      ),
    },
    done: ({ id, url }) => `created the endpoint ${id} for ${url}`,
    shown: ({ secret }) => shownOnce(secret),
    after: warn,
    next: ({ id }) => `webhooks test ${id}`,
  }),
  row("list", "GET /v1/webhooks", {
    example: "--status disabled",
    columns: webhookColumns,
    after: warn,
  }),
  row("get <id>", "GET /v1/webhooks/{webhook_id}", {
    values: webhookValues,
    next: ({ id, status }) => (status === "active" ? undefined : `webhooks enable ${id} --replay`),
  }),
  row("update <id>", "PATCH /v1/webhooks/{webhook_id}", {
    about: "change an endpoint; values without a flag stay",
    example: "--event 'email.*' --rate-limit 10",
    flags: {
      ...endpointFlags,
      url: flag(["--endpoint <url>", "new URL"]),
      enabled: "on activates the endpoint, off pauses it",
    },
    values: webhookValues,
    after: warn,
  }),
  row("delete <id>", "DELETE /v1/webhooks/{webhook_id}", {
    about: "delete an endpoint and its open deliveries",
    ...deletes((id) => `The endpoint ${id} will be deleted now. Its open deliveries end.`),
  }),
  row("enable <id>", "POST /v1/webhooks/{webhook_id}/enable", {
    about: "make an endpoint active again",
    example: "--replay",
    flags: { replay: false },
    options: [["--replay", "also send the events that were held"]],
    input: ({ replay }) => ({ replay: replay ? "held" : "none" }),
    ...switched,
  }),
  row("disable <id>", "POST /v1/webhooks/{webhook_id}/disable", {
    about: "disable an endpoint: its events are held for 7 days",
    ...switched,
  }),
  row("pause <id>", "POST /v1/webhooks/{webhook_id}/pause", {
    about: "pause an endpoint: its events are held for 7 days",
    ...switched,
  }),
  row("replay <id>", "POST /v1/webhooks/{webhook_id}/replay", {
    about: "send the held, the failed or all events of a time range again",
    example: ["--since 7d", "--since 1h --status all"],
    flags: { status: "events to send: held, failed or all (default: held)" },
    ...startedJob,
  }),
  row("stats <id>", "GET /v1/webhooks/{webhook_id}/stats", {
    example: "--window 7d",
    flags: { window: "time range: 24h or 7d (default: 24h)" },
  }),
  row("rotate <id>", "POST /v1/webhooks/{webhook_id}/rotate-secret", {
    about: "create a new signing secret; the old one works for 24 more hours",
    example: ["", "--now --yes"],
    flags: { expire_previous_now: false },
    options: [["--now", "stop the old secret now"]],
    async confirm(context, [id], _, { now }) {
      const what = `The old secret of ${id} stops now. Receivers refuse deliveries until they have the new secret.`
      if (now) await confirm(context, what, "rotate")
    },
    input: ({ now }) => ({ expire_previous_now: now === true }),
    done: ({ previous_secret_expires_at: until }) =>
      `created a new secret${until ? `; the old secret works until ${until}` : ""}`,
    shown: ({ secret }) => shownOnce(secret),
    brief: ({ secret }) => secret, // with --quiet too: it cannot be had again
  }),
  row("test <id>", "POST /v1/webhooks/{webhook_id}/test", {
    about: "send an example event now, and show the answer; exit 1 if it was refused",
    example: "--event email.bounced",
    flags: { event_type: "type of the event (default: webhook.test)" },
    shown: ({ delivered, response_status, error, duration_ms, response_body }, paint) => {
      const mark = delivered ? paint.green("✓ delivered") : paint.red("✗ not delivered")
      const answer = [response_status, error].filter((part) => part !== null).join(" ")
      const body = fields([["body", response_body]], paint)
      return `${mark}  ${answer}  ${duration_ms} ms\n${body}`.trimEnd()
    },
    brief: ({ delivery_id }) => delivery_id,
    next: ({ delivered, delivery_id }, [id]) =>
      delivered ? undefined : `webhooks deliveries ${id} ${delivery_id}`,
    exit: ({ delivered }) => (delivered ? exits.done : exits.failed),
  }),
  ...deliveryRows,
  own(
    "verify <url>",
    later(async () => (await import("../local/verify")).verify),
    {
      about: "test your receiver with good and bad deliveries; exit 8 if one fails",
      word: "localhost:3000/hooks",
      options: [
        ["--secret <secret>", "signing secret of the receiver (default: that of `belfry listen`)"],
        ["--skip-verify", "accept any TLS certificate of the receiver"],
      ],
    },
  ),
]

/** Of the root, because it needs no endpoint at the server. */
export const listenRow = own(
  "listen",
  later(async () => (await import("../local/listen")).listen),
  {
    about: "forward webhooks to a receiver on this machine",
    example: [
      "--forward-to localhost:3000/hooks",
      "--forward-to localhost:3000/hooks --event email.delivered --event email.bounced",
      "--print-secret",
    ],
    options: [
      ["--forward-to <url>", "URL of the receiver, for example localhost:3000/hooks"],
      [EVENT, ONLY_EVENT, "several"],
      AFTER,
      ["--print-secret", "print the signing secret of this machine, and forward nothing"],
      ["--skip-verify", "accept any TLS certificate of the receiver"],
      ["--limit <number>", "end after this number of deliveries"],
    ],
  },
)
