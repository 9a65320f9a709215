import { confirm } from "../confirm"
import type { Action, Context } from "../context"
import { exits, usage } from "../failure"
import { deleted_fields, rotated_fields, webhook_fields, webhook_test_fields } from "../fields"
import { optionWords } from "../hint"
import { readText } from "../input"
import { write } from "../output"
import { limitOf, listUpTo } from "../paging"
import type { Deleted } from "../records"
import { onOff } from "../switches"
import { fields } from "../table"
import { type EndpointOptions, endpointBody } from "./body"
import type { Warning, Webhook } from "./records"
import { columns, shown, stateOf } from "./show"

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
