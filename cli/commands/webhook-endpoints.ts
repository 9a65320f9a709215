import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { deleted_fields, rotated_fields, webhook_fields, webhook_test_fields } from "../lib/fields"
import { optionWords } from "../lib/flags"
import { given, headerFields, onOff, pairs, parsedObject, readText } from "../lib/input"
import { write } from "../lib/output"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import type { Deleted, Delivery, DeliveryDetail, Warning, Webhook } from "../lib/records"
import { type Column, fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, duration } from "../lib/time"

const ALL = "/v1/webhooks"

export const one = (id: string) => `${ALL}/${encodeURIComponent(id)}`

interface CreateOptions extends EndpointOptions {
  secretFile?: string
  idempotencyKey?: string
}

export const create: Action<CreateOptions> = async (context, options, url) => {
  const { output, paint } = context
  output.promises([...webhook_fields, "warnings", "secret"])
  const { secretFile, idempotencyKey } = options
  const own = secretFile && (await readText(secretFile, "--secret-file")).trim()
  const body = { url, ...(await endpointBody(options)), ...(own && { secret: own }) }
  const headers = idempotencyKey ? { "idempotency-key": idempotencyKey } : undefined
  const { data } = await context.client().post<Webhook>(ALL, body, headers)
  const made = `${paint.green("✓")} created the endpoint ${data.id} for ${data.url}`
  await output.record(data, () => once(made, data.secret))
  await warn(context, data.warnings)
  await output.next(`belfry webhooks test ${data.id}`)
  return undefined
}

const once = (what: string, secret = "") =>
  [what, "", `  ${secret}`, "", "The secret cannot be shown again."].join("\n")

interface ListOptions {
  status?: string
  limit?: string
}

export const list: Action<ListOptions> = async (context, { status, limit }) => {
  const found = await listUpTo<Webhook>(context.client(), ALL, { status }, limitOf(limit))
  await context.output.list(found.rows, columns)
  await warn(context, found.warnings as Warning[])
  if (found.more) {
    const words = optionWords({ status, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry webhooks list${words}`)
  }
  return undefined
}

/** On stderr, so that what is printed as JSON stays as the API gave it. */
async function warn({ output, paint }: Context, warnings: readonly Warning[] = []): Promise<void> {
  if (output.form === "quiet") return
  for (const { webhook_id, message } of warnings) {
    const whose = webhook_id === undefined ? "" : ` ${webhook_id}`
    await write(process.stderr, `${paint.yellow(`warning${whose}:`)} ${message}\n`)
  }
}

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Webhook>(one(id))
  await context.output.record(data, () => shown(data, context.paint))
  if (data.status !== "active") await context.output.next(`belfry webhooks enable ${id} --replay`)
  return undefined
}

interface UpdateOptions extends EndpointOptions {
  enabled?: string
}

export const update: Action<UpdateOptions> = async (context, options, id = "") => {
  const enabled = onOff(options.enabled, "--enabled")
  const changes = { ...(await endpointBody(options)), ...(enabled !== undefined && { enabled }) }
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises([...webhook_fields, "warnings"])
  const { data } = await context.client().patch<Webhook>(one(id), changes)
  await context.output.record(data, () => shown(data, context.paint))
  await warn(context, data.warnings)
  return undefined
}

export const remove: Action<object> = async (context, _, id = "") => {
  const { output, paint } = context
  output.promises(deleted_fields)
  const what = `The endpoint ${id} will be deleted now. Its open deliveries end.`
  await confirm(context, what, "delete")
  const { data } = await context.client().remove<Deleted>(one(id))
  await output.record(data, () => `${paint.green("✓")} deleted ${data.id}`)
  return undefined
}

interface EnableOptions {
  replay?: boolean
}

export const enable: Action<EnableOptions> = async (context, { replay }, id = "") =>
  switched(context, id, "enable", { replay: replay ? "held" : "none" })

export const disable: Action<object> = async (context, _, id = "") =>
  switched(context, id, "disable")

export const pause: Action<object> = async (context, _, id = "") => switched(context, id, "pause")

async function switched(context: Context, id: string, verb: string, body?: object) {
  const { output, paint } = context
  output.promises(webhook_fields)
  const { data } = await context.client().post<Webhook>(`${one(id)}/${verb}`, body)
  const { status, held_count } = data
  const held = held_count > 0 ? `, ${held_count} held` : ""
  await output.record(data, () => `${paint.green("✓")} ${data.id} is ${stateOf(data)}${held}`)
  if (status !== "active") await output.next(`belfry webhooks enable ${data.id} --replay`)
  else if (held_count > 0) await output.next(`belfry webhooks replay ${data.id} --since 7d`)
  return undefined
}

interface RotateOptions {
  now?: boolean
}

type Rotated = { secret: string; previous_secret_expires_at: string | null }

export const rotate: Action<RotateOptions> = async (context, { now }, id = "") => {
  const { output, paint } = context
  output.promises(rotated_fields)
  if (now) {
    const what = `The old secret of ${id} stops now. Receivers refuse deliveries until they have the new secret.`
    await confirm(context, what, "rotate")
  }
  const body = { expire_previous_now: now === true }
  const { data } = await context.client().post<Rotated>(`${one(id)}/rotate-secret`, body)
  const until = data.previous_secret_expires_at
  const rest = until ? `; the old secret works until ${until}` : ""
  const human = () => once(`${paint.green("✓")} created a new secret${rest}`, data.secret)
  await output.record(data, human, data.secret) // with --quiet too: it cannot be had again
  return undefined
}

interface TestOptions {
  event?: string
}

type Tested = {
  delivered: boolean
  delivery_id: string
  response_status: number | null
  response_body: string | null
  duration_ms: number
  error: string | null
}

/** Exit 1 when the receiver did not take it. */
export const test: Action<TestOptions> = async (context, { event }, id = "") => {
  const { output, paint } = context
  output.promises(webhook_test_fields)
  const body = event === undefined ? {} : { event_type: event }
  const { data } = await context.client().post<Tested>(`${one(id)}/test`, body)
  const { delivered, delivery_id, response_status, error, duration_ms, response_body } = data
  const mark = delivered ? paint.green("✓ delivered") : paint.red("✗ not delivered")
  const answer = [response_status, error].filter((part) => part !== null).join(" ")
  const human = () =>
    `${mark}  ${answer}  ${duration_ms} ms\n${fields([["body", response_body]], paint)}`
  await output.record(data, () => human().trimEnd(), delivery_id)
  if (!delivered) await output.next(`belfry webhooks deliveries ${id} ${delivery_id}`)
  return delivered ? exits.done : exits.failed
}

/** What `webhooks create` and `update` take, as commander reads it. */
export interface EndpointOptions {
  endpoint?: string
  event?: string[]
  description?: string
  header?: string[]
  signature?: string
  maxAttempts?: string
  intervals?: string
  rateLimit?: string
  filter?: string
  transformFile?: string
  metadata?: string[]
}

/** The fields of the request that were said. `none` takes away what may be absent. */
export async function endpointBody(options: EndpointOptions): Promise<Record<string, unknown>> {
  const { event, header, metadata, maxAttempts, intervals } = options
  const policy = given({
    max_attempts: number(maxAttempts, "--max-attempts"),
    intervals: intervals?.split(",").map((text) => duration(text, "--intervals") / 1000),
  })
  return given({
    url: options.endpoint,
    events: event?.flatMap((some) => some.split(",")),
    description: orNone(options.description, (text) => text),
    headers: header && headerFields(header.filter((one) => one !== "none")),
    header_format: options.signature,
    retry_policy: Object.keys(policy).length > 0 ? policy : undefined,
    rate_limit: orNone(options.rateLimit, (text) => number(text, "--rate-limit")),
    filter: orNone(options.filter, (text) => parsedObject(text, "--filter")),
    transform: await transformOf(options.transformFile),
    metadata: metadata && pairs(metadata, "--metadata"),
  })
}

const orNone = <Value>(text: string | undefined, read: (text: string) => Value) =>
  text === undefined ? undefined : text === "none" ? null : read(text)

async function transformOf(path: string | undefined) {
  if (path === undefined) return undefined
  return path === "none" ? null : await readText(path, "--transform-file")
}

function number(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d+$/.test(text)) throw usage(`${option}: "${text}" is not a whole number`)
  return Number(text)
}

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
