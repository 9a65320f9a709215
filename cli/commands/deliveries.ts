import type { Components } from "../../src/client/components"
import { ONLY_EVENT, SINCE, UNTIL } from "../lib/flags"
import { OTHER_ID, row } from "../lib/resource"
import { ago, type Columns, coloured, count, fields, idColumn, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age } from "../lib/time"

type Delivery = Components["Delivery"]

const STATUS_COLOURS = { success: "green", pending: "yellow", held: "yellow" } as const

export const deliveryColumns: Columns<Delivery> = {
  ID: idColumn("delivery"),
  EVENT: wide(({ event_type }) => event_type),
  STATUS: { ...coloured(({ status }: Delivery) => status, STATUS_COLOURS, "red"), least: 9 },
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

/** After a job was started, by `webhooks replay` or by `webhooks retry --all`. */
export const startedJob = {
  done: ({ progress }: Components["Job"]) => `started a job with ${progress?.total ?? 0} items`,
  shown: ({ id }: Components["Job"], paint: Paint) => fields([["job", id]], paint),
  next: ({ id }: Components["Job"]) => `jobs get ${id} --wait`,
}

const oneRow = row("", "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}", {
  shown: deliveryText,
  next: ({ status, id }, [webhook_id]) =>
    status === "exhausted" ? `webhooks retry ${webhook_id} ${id}` : undefined,
})

const retryOneRow = row("", "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", {
  done: ({ id }) => `delivery ${id} is attempted again`,
  next: (_, words) => `webhooks deliveries ${words.join(" ")}`,
})

/** Deliveries of an endpoint. */
export const deliveryRows = [
  row("deliveries <id> [delivery]", "GET /v1/webhooks/{webhook_id}/deliveries", {
    about: "list the deliveries of an endpoint, newest first, or show one",
    example: ["--status exhausted --since 1d", OTHER_ID],
    flags: {
      offset: false,
      status: "show only this status: pending, failed, success, exhausted or held",
      event_type: "show only events of this type",
      event_id: "show only deliveries of this event",
    },
    instead: (_, { length }) => length > 1 && oneRow,
    columns: deliveryColumns,
  }),
  row("retry <id> [delivery]", "POST /v1/webhooks/{webhook_id}/deliveries/bulk-retry", {
    about: "attempt one delivery again, or all failed deliveries",
    example: [OTHER_ID, "--all --since 1d"],
    options: [["--all", "retry all failed deliveries of the time range"]],
    flags: {
      status: "with --all: retry only status failed or exhausted; may be repeated",
      since: `with --all: ${SINCE[1]}`,
      until: `with --all: ${UNTIL[1]}`,
      event_types: `with --all: ${ONLY_EVENT}`,
    },
    refuse: ({ all }, { length }) => (all && length === 1 ? undefined : "give a delivery or --all"),
    instead: ({ all }, { length }) => !all && length > 1 && retryOneRow,
    ...startedJob,
  }),
]
