import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { delivery_fields, job_fields } from "../lib/fields"
import { optionWords } from "../lib/flags"
import { given } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import type { Delivery, DeliveryDetail, Job } from "../lib/records"
import { fields } from "../lib/table"
import { moment } from "../lib/time"
import { deliveryColumns, one, shownDelivery } from "./webhook-endpoints"

interface ListOptions {
  status?: string
  event?: string
  eventId?: string
  since?: string
  limit?: string
}

/** All of an endpoint, or one with what was sent and what came back. */
export const deliveries: Action<ListOptions> = async (context, options, id = "", delivery) => {
  if (delivery !== undefined) return get(context, id, delivery)
  const { status, event, eventId, since, limit } = options
  const query = {
    status,
    event_type: event,
    event_id: eventId,
    since: since === undefined ? undefined : moment(since, "--since"),
  }
  const path = `${one(id)}/deliveries`
  const found = await listUpTo<Delivery>(context.client(), path, query, limitOf(limit))
  await context.output.list(found.rows, deliveryColumns)
  if (found.more) {
    const words = optionWords({ ...options, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry webhooks deliveries ${id}${words}`)
  }
  return undefined
}

async function get(context: Context, id: string, delivery: string) {
  const path = `${one(id)}/deliveries/${encodeURIComponent(delivery)}`
  const { data } = await context.client().get<DeliveryDetail>(path)
  await context.output.record(data, () => shownDelivery(data, context.paint))
  if (data.status === "exhausted") {
    await context.output.next(`belfry webhooks retry ${id} ${delivery}`)
  }
  return undefined
}

interface SpanOptions {
  since?: string
  until?: string
  event?: string[]
}

interface RetryOptions extends SpanOptions {
  all?: boolean
  status?: string[]
}

/** One more attempt of one delivery, or with `--all` of each that failed. */
export const retry: Action<RetryOptions> = async (context, options, id = "", delivery) => {
  if ((delivery === undefined) === (options.all !== true)) {
    throw usage("give a delivery or --all", "see `belfry webhooks deliveries ID`")
  }
  if (delivery === undefined) {
    const body = { ...spanOf(options), ...given({ status: options.status }) }
    return begun(context, `${one(id)}/deliveries/bulk-retry`, body)
  }
  const { output, paint } = context
  output.promises(delivery_fields)
  const path = `${one(id)}/deliveries/${encodeURIComponent(delivery)}/retry`
  const { data } = await context.client().post<Delivery>(path)
  await output.record(data, () => `${paint.green("✓")} delivery ${data.id} is attempted again`)
  await output.next(`belfry webhooks deliveries ${id} ${delivery}`)
  return undefined
}

interface ReplayOptions extends SpanOptions {
  since: string
  status?: string
}

/** Events again, from the store of events. */
export const replay: Action<ReplayOptions> = async (context, options, id = "") =>
  begun(context, `${one(id)}/replay`, { ...spanOf(options), ...given({ status: options.status }) })

function spanOf({ since, until, event }: SpanOptions) {
  return given({
    since: since === undefined ? undefined : moment(since, "--since"),
    until: until === undefined ? undefined : moment(until, "--until"),
    event_types: event?.flatMap((some) => some.split(",")),
  })
}

async function begun(context: Context, path: string, body: object) {
  const { output, paint } = context
  output.promises(job_fields)
  const { data } = await context.client().post<Job>(path, body)
  const what = `${paint.green("✓")} started a job with ${data.progress?.total ?? 0} items`
  await output.record(data, () => `${what}\n${fields([["job", data.id]], paint)}`)
  await output.next(`belfry jobs get ${data.id} --wait`)
  return undefined
}

interface StatsOptions {
  window?: string
}

export const stats: Action<StatsOptions> = async (context, { window }, id = "") => {
  const { data } = await context.client().get<Stats>(`${one(id)}/stats`, { window })
  const { by_status, ...numbers } = data
  const answers = Object.entries(by_status ?? {}).map(([name, count]) => `${name}: ${count}`)
  const pairs: [string, unknown][] = [...Object.entries(numbers), ["answers", answers.join(", ")]]
  await context.output.record(data, () => fields(pairs, context.paint))
  return undefined
}

type Stats = { by_status: Record<string, number> } & Record<string, unknown>
