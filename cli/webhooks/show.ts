import { type Column, fields, idColumn } from "../table"
import type { Paint } from "../terminal"
import { age } from "../time"
import type { Delivery, DeliveryDetail, Webhook } from "./records"

export const columns: Column<Webhook>[] = [
  idColumn("webhook"),
  { title: "URL", cell: ({ url }) => url, flexible: true },
  { title: "EVENTS", spare: 3, cell: ({ events }) => events.join(" "), flexible: "first" },
  { title: "STATUS", cell: shortState, paint: paintState },
  { title: "FAILED", spare: 1, cell: ({ consecutive_failures }) => String(consecutive_failures) },
  { title: "HELD", cell: ({ held_count }) => String(held_count) },
  { title: "AGE", spare: 2, cell: ({ created_at }) => age(created_at) },
]

const reasons: Partial<Record<string, string>> = {
  circuit_breaker: "breaker",
  manual: "by hand",
}

/** `off: breaker`: a table has little room. */
function shortState({ status, disabled_reason: reason }: Webhook): string {
  return reason ? `off: ${reasons[reason] ?? reason}` : status
}

export function stateOf({ status, disabled_reason }: Webhook): string {
  return disabled_reason ? `${status} (${disabled_reason})` : status
}

function paintState(text: string, { status }: Webhook, paint: Paint): string {
  return status === "active" ? paint.green(text) : paint.red(text)
}

export const shown = (webhook: Webhook, paint: Paint): string =>
  fields(
    [
      ["id", webhook.id],
      ["url", webhook.url],
      ["events", webhook.events.join(" ")],
      ["description", webhook.description],
      ["status", stateOf(webhook)],
      ["failures in a row", webhook.consecutive_failures],
      ["held", webhook.held_count],
      ["secret", webhook.secret_hint],
      ["signature", webhook.header_format],
      ["attempts", webhook.retry_policy?.max_attempts],
      ["pauses (s)", webhook.retry_policy?.intervals?.join(" ")],
      ["per second", webhook.rate_limit],
      ["headers", Object.keys(webhook.headers ?? {}).join(" ")],
      ["filter", webhook.filter && JSON.stringify(webhook.filter)],
      ["transform", webhook.transform],
      ["last success", webhook.last_success_at],
      ["last failure", webhook.last_failure_at],
      ["created", webhook.created_at],
    ],
    paint,
  )

export const deliveryColumns: Column<Delivery>[] = [
  idColumn("delivery"),
  { title: "EVENT", cell: ({ event_type }) => event_type, flexible: true },
  { title: "STATUS", cell: ({ status }) => status, paint: paintDelivery },
  { title: "TRIES", cell: ({ attempts, max_attempts }) => `${attempts}/${max_attempts}` },
  { title: "ANSWER", cell: answerOf },
  { title: "MS", spare: 3, cell: ({ latency_ms }) => String(latency_ms ?? "") },
  { title: "NEXT", spare: 1, cell: ({ next_attempt_at }) => age(next_attempt_at) },
  { title: "AGE", spare: 2, cell: ({ created_at }) => age(created_at) },
]

function answerOf({ last_response_status, last_error }: Delivery): string {
  return String(last_response_status ?? last_error ?? "")
}

function paintDelivery(text: string, { status }: Delivery, paint: Paint): string {
  if (status === "success") return paint.green(text)
  return status === "pending" || status === "held" ? paint.yellow(text) : paint.red(text)
}

export function shownDelivery(delivery: DeliveryDetail, paint: Paint): string {
  const head = fields(
    [
      ["id", delivery.id],
      ["event", `${delivery.event_type}  ${delivery.event_id}`],
      ["status", delivery.status],
      ["attempts", `${delivery.attempts} of ${delivery.max_attempts}`],
      ["next", delivery.next_attempt_at],
      ["url", delivery.url],
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
