import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { EVENT, LIMIT, ONLY_EVENT, optionWords, SINCE, UNTIL } from "../lib/flags"
import { given } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { groupOf, ID } from "../lib/resource"
import { examples, run, several } from "../lib/run"
import { ago, type Columns, count, fields, idColumn, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, moment } from "../lib/time"
import { startedJob } from "./webhooks"

type Delivery = Components["Delivery"]

const DELIVERY = "0199a1c2-0000-7000-8000-000000000002"

/** Deliveries of an endpoint: `belfry webhooks deliveries` and `retry`. */
export function define(program: Command): void {
  const webhooks = groupOf(program, "webhooks")
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
}

export const deliveryColumns: Columns<Delivery> = {
  ID: idColumn("delivery"),
  EVENT: wide(({ event_type }) => event_type),
  STATUS: { cell: ({ status }) => status, paint: paintStatus, least: 9 },
  TRIES: ({ attempts, max_attempts }) => `${attempts}/${max_attempts}`,
  ANSWER: { cell: answerOf, least: 8 },
  MS: count(({ latency_ms }) => latency_ms, 3),
  NEXT: { cell: nextOf, spare: 1, least: 7 },
  AGE: { cell: ago(({ created_at }) => created_at), spare: 2 },
}

/** When it is attempted again. What is held is not; it shows how long it is still kept. */
function nextOf({ next_attempt_at, status }: Delivery): string {
  if (status === "success" || status === "exhausted") return ""
  const next = age(next_attempt_at)
  return status === "held" ? next.replace(/^in (.*)$/, "$1 left") : next
}

function answerOf({ last_response_status, last_error }: Delivery): string {
  return String(last_response_status ?? last_error ?? "")
}

function paintStatus(text: string, { status }: Delivery, paint: Paint): string {
  if (status === "success") return paint.green(text)
  return status === "pending" || status === "held" ? paint.yellow(text) : paint.red(text)
}

interface ListOptions {
  status?: string
  event?: string
  eventId?: string
  since?: string
  limit?: string
}

/** All of an endpoint, or one with what was sent and what came back. */
const deliveries: Action<ListOptions> = async (context, options, id = "", delivery) => {
  if (delivery !== undefined) return await showOne(context, id, delivery)
  const { status, event, eventId, since, limit } = options
  const query = {
    status,
    event_type: event,
    event_id: eventId,
    since: since === undefined ? undefined : moment(since, "--since"),
  }
  const name = "GET /v1/webhooks/{webhook_id}/deliveries"
  const input = { params: { webhook_id: id }, query }
  const found = await listUpTo(context.client(), name, limitOf(limit), input)
  await context.output.list(found.rows, deliveryColumns)
  if (found.more) {
    const words = optionWords({ ...options, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry webhooks deliveries ${id}${words}`)
  }
}

async function showOne(
  context: Context,
  webhook_id: string,
  delivery_id: string,
): Promise<undefined> {
  const { data } = await context.call("GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}", {
    params: { webhook_id, delivery_id },
  })
  await context.output.record(data, () => deliveryText(data, context.paint))
  if (data.status === "exhausted") {
    await context.output.next(`belfry webhooks retry ${webhook_id} ${delivery_id}`)
  }
}

/** One delivery: what was sent, what came back, and each attempt. */
export function deliveryText(delivery: Components["DeliveryDetail"], paint: Paint): string {
  const head = fields(
    [
      ["id", delivery.id],
      ["event", `${delivery.event_type}  ${delivery.event_id}`],
      ["status", delivery.status],
      ["attempts", `${delivery.attempts} of ${delivery.max_attempts}`],
      ["next", delivery.next_attempt_at],
      ["url", delivery.url],
      ["trigger", delivery.trigger],
      ["answer", answerOf(delivery)],
      ["body", delivery.last_response_body],
    ],
    paint,
  )
  const tries = (delivery.attempt_log ?? []).map(
    ({ attempt, at, response_status, error, latency_ms }) =>
      `${attempt}.  ${at}  ${response_status ?? error ?? ""}${latency_ms === null ? "" : `  ${latency_ms} ms`}`,
  )
  const parts = [
    ["Request headers", delivery.request_headers],
    ["Response headers", delivery.response_headers],
    ["Payload", delivery.payload],
  ] as const
  const texts = parts.flatMap(([title, value]) =>
    value === null || value === undefined
      ? []
      : [`${paint.dim(title)}\n${JSON.stringify(value, null, 2)}`],
  )
  const log = tries.length > 0 ? [`${paint.dim("Attempts")}\n${tries.join("\n")}`] : []
  return [head, ...log, ...texts].join("\n\n")
}

interface RetryOptions {
  all?: boolean
  status?: ("failed" | "exhausted")[]
  since?: string
  until?: string
  event?: string[]
}

/** One more attempt of one delivery, or with `--all` of each that failed. */
const retry: Action<RetryOptions> = async (context, options, webhook_id = "", delivery_id) => {
  if ((delivery_id === undefined) === (options.all !== true)) {
    throw usage("give a delivery or --all", "see `belfry webhooks deliveries ID`")
  }
  if (delivery_id === undefined) return await retryAll(context, options, webhook_id)
  const { output, paint } = context
  const name = "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"
  output.promises(fieldsOf(name))
  const { data } = await context.call(name, { params: { webhook_id, delivery_id } })
  await output.record(data, () => `${paint.green("✓")} delivery ${data.id} is attempted again`)
  await output.next(`belfry webhooks deliveries ${webhook_id} ${delivery_id}`)
}

async function retryAll(
  context: Context,
  options: RetryOptions,
  webhook_id: string,
): Promise<undefined> {
  const { status, since, until, event } = options
  const { output, paint } = context
  const name = "POST /v1/webhooks/{webhook_id}/deliveries/bulk-retry"
  output.promises(fieldsOf(name))
  const body = given({
    status,
    since: since && moment(since, "--since"),
    until: until && moment(until, "--until"),
    event_types: event?.flatMap((some) => some.split(",")),
  })
  const { data } = await context.call(name, { params: { webhook_id }, body })
  const { done, shown: text, next } = startedJob
  await output.record(data, () => `${paint.green("✓")} ${done(data)}\n${text(data, paint)}`)
  await output.next(`belfry ${next(data)}`)
}
