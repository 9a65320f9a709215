import type { Command } from "commander"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { follow, readFeed, readLatest, type Start, serverTime, startAt } from "../lib/feed"
import { envelope_fields } from "../lib/fields"
import { AFTER, EVENT, LIMIT, ONLY_EVENT, SINCE } from "../lib/flags"
import { parsedObject } from "../lib/input"
import { limitOf } from "../lib/paging"
import { address, type Envelope } from "../lib/records"
import { examples, run, several } from "../lib/run"
import { NoUpgrade, openStream, tellLink } from "../lib/stream"
import { type Column, fields, idColumn, lineId, shortId } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { age, clockTime, millis, moment } from "../lib/time"

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
    .action(run(list))

  events
    .command("get <id>")
    .description("show one event in the form that webhooks carry")
    .addHelpText("after", examples("events get evt_0199a1c2-0000-7000-8000-000000000001"))
    .action(run(get))

  events
    .command("types")
    .description("list the event types; --json adds their fields and examples")
    .option("--category <category>", "show only this category: email, push or auth")
    .addHelpText("after", examples("events types --category email"))
    .action(run(types))
}

interface StartOptions {
  after?: string
  since?: string
}

interface ListOptions extends StartOptions {
  event?: string[]
  oldest?: boolean
  limit?: string
  follow?: boolean
}

const columns: Column<Envelope>[] = [
  idColumn("event"),
  { title: "TYPE", cell: ({ type }) => type },
  { title: "TO", cell: (event) => recipientOf(event) ?? "", flexible: "last" },
  { title: "ABOUT", cell: (event) => aboutOf(event), flexible: "first" },
  { title: "AGE", spare: 1, cell: ({ created_at }) => age(created_at) },
]

export const list: Action<ListOptions> = async (context, options) => {
  const { output } = context
  const limit = limitOf(options.limit)
  const types = options.event?.join(",")
  if (options.follow) return await followed(context, options, types, limit)
  const rows = isFeed(options)
    ? await readFeed(context.client(), await startOf(context.client(), options), types, limit)
    : await readLatest(context.client(), sinceOf(options), types, limit)
  await output.list(rows, columns)
  const first = rows[0]
  if (first) await output.next(`belfry events get ${first.id}`)
  return undefined
}

/** Only the feed can begin behind an event; the latest come first otherwise. */
const isFeed = ({ oldest, after }: ListOptions) => oldest === true || after !== undefined

const sinceOf = ({ since }: StartOptions) =>
  since === undefined ? undefined : moment(since, "--since")

/** What was, oldest first, and then what comes, one line each. */
async function followed(
  context: Context,
  options: ListOptions,
  types: string | undefined,
  limit: number,
): Promise<undefined> {
  const client = context.client()
  const show = (event: Envelope) => context.output.line(event, () => eventLine(event, context))
  const deadline = context.timeout === undefined ? undefined : millis() + context.timeout
  let start = await startOf(client, options)
  if (!isFeed(options)) {
    const past = await readLatest(client, sinceOf(options), types, limit)
    for (const event of past.toReversed()) await show(event)
    start = { after: past[0]?.id, not_before: start.not_before }
  }
  for await (const event of follow(client, start, types, deadline)) await show(event)
  return undefined
}

/** Where `--after` or `--since` begins. */
export async function startOf(client: Client, { after, since }: StartOptions): Promise<Start> {
  if (after !== undefined && since !== undefined) throw usage("--after and --since: use one")
  if (since !== undefined) return await startAt(client, moment(since, "--since"))
  return { after, not_before: undefined }
}

/** `12:00:01.131 email.sent  0199a1c2-…  ann@mailbox.test`, the id by its end on a narrow terminal. */
export function eventLine(event: Envelope, { paint, terminal }: Lines): string {
  const time = paint.dim(clockTime(event.created_at))
  const about = subjectOf(event, (id) => lineId(id, terminal))
  return `${time} ${cleanLine(event.type).padEnd(18)} ${cleanLine(about)}`
}

/** Where lines are printed. */
type Lines = Pick<Context, "paint" | "terminal">

const subjectOf = (event: Envelope, brief?: (id: string) => string): string =>
  [idOf(event, brief), recipientOf(event), markOf(event)].filter(Boolean).join("  ")

const aboutOf = (event: Envelope): string =>
  [idOf(event, shortId), markOf(event)].filter(Boolean).join("  ")

function idOf({ data }: Envelope, brief = (id: string) => id): string | undefined {
  const id = data.email_id ?? data.message_id ?? data.webhook_id ?? data.id
  return typeof id === "string" ? brief(id) : undefined
}

function recipientOf({ data }: Envelope): string | undefined {
  const to = data.recipient_email ?? data.to
  const whom = typeof to === "object" && to !== null && "email" in to ? String(to.email) : to
  return typeof whom === "string" ? address(whom) : undefined
}

const markOf = ({ data }: Envelope) => (data.simulated === true ? "simulated" : undefined)

type EventType = {
  type: string
  category: string
  description: string
  fields: { name: string; type: string; nullable: boolean; description: string }[]
  example: Envelope
}

const typeColumns: Column<EventType>[] = [
  { title: "TYPE", cell: ({ type }) => type },
  { title: "CATEGORY", cell: ({ category }) => category },
  { title: "WHEN", cell: ({ description }) => description, flexible: true },
]

interface TypeOptions {
  category?: string
}

/** What can happen, with fields and examples. */
export const types: Action<TypeOptions> = async (context, { category }) => {
  const { data } = await context.client().get<EventType[]>("/v1/webhooks/events", { category })
  await context.output.list(data, typeColumns)
  return undefined
}

/** One event, as webhooks carry it. */
export const get: Action<object> = async (context, _, id = "") => {
  const path = `/v1/events/${encodeURIComponent(id)}`
  const { data } = await context.client().get<Envelope>(path)
  const { id: event, type, created_at } = data
  const head: [string, unknown][] = [
    ["id", event],
    ["type", type],
    ["created", created_at],
  ]
  const human = () => `${fields(head, context.paint)}\n\n${JSON.stringify(data.data, null, 2)}`
  await context.output.record(data, human)
  return undefined
}

interface TailOptions {
  after?: string
  since?: string
  event?: string[]
  limit?: string
}

interface Tail {
  client: Client
  start: Start
  types: string | undefined
  /** Milliseconds, if not until Ctrl-C. */
  timeout: number | undefined
  onState: (state: "open" | "lost") => void
  /** False when it has seen enough. */
  show: (event: Envelope) => Promise<boolean>
}

/** Events as they come, over the stream; where no WebSocket gets through, by asking for them. */
export const tail: Action<TailOptions> = async (context, options) => {
  const { output, paint, timeout } = context
  const client = context.client()
  let left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  const is_given = options.after !== undefined || options.since !== undefined
  const start = is_given
    ? await startOf(client, options)
    : await startAt(client, await serverTime(client))
  const show = async (event: Envelope) => {
    if (left > 0) await output.line(event, () => eventLine(event, context))
    left -= 1
    return left > 0
  }
  const onState = tellLink(context)
  const all = { client, start, types: options.event?.join(","), timeout, onState, show }
  await output.note(paint.dim("following events; Ctrl-C stops"))
  try {
    await overStream(all)
  } catch (error) {
    if (!(error instanceof NoUpgrade)) throw error
    await output.note(
      paint.yellow("the WebSocket connection fails, so events are polled over HTTP"),
    )
    await byAsking(all)
  }
  return undefined
}

async function overStream({ client, start, types, timeout, onState, show }: Tail): Promise<void> {
  const stream = openStream(client, {
    start,
    types,
    onState,
    onFrame: async (frame) => {
      if (frame.type === "event" && !(await show(frame.event))) stream.close()
    },
  })
  const timer = timeout === undefined ? undefined : setTimeout(() => stream.close(), timeout)
  await stream.ended.finally(() => clearTimeout(timer))
}

async function byAsking({ client, start, types, timeout, show }: Tail): Promise<void> {
  const deadline = timeout === undefined ? undefined : millis() + timeout
  for await (const event of follow(client, start, types, deadline)) {
    if (!(await show(event))) return
  }
}

interface TriggerOptions {
  override?: string[]
  idempotencyKey?: string
}

/** A marked event through the real path: stored, routed and delivered like any other. */
export const trigger: Action<TriggerOptions> = async (context, options, type = "") => {
  const { output, paint } = context
  output.promises(envelope_fields)
  const { override = [], idempotencyKey } = options
  const data = override.reduce(overridden, {})
  const body = { type, ...(override.length > 0 && { data }) }
  const headers = idempotencyKey ? { "idempotency-key": idempotencyKey } : undefined
  const answer = await context.client().post<Envelope>("/v1/events/trigger", body, headers)
  const event = answer.data
  await output.record(event, () => `${paint.green("✓")} ${event.type} ${event.id}`)
  await output.next("belfry webhooks list")
  return undefined
}

type Data = Record<string, unknown>

/** `user.email=kim@example.com`: dots lead inside. What reads as JSON is taken as that. */
function overridden(data: Data, text: string): Data {
  if (text.trimStart().startsWith("{")) return { ...data, ...parsedObject(text, "--override") }
  const at = text.indexOf("=")
  const path = text.slice(0, Math.max(0, at)).split(".")
  if (at < 1 || path.some((step) => step === "")) {
    throw usage(`--override: "${text}" is neither k=v nor a JSON object`)
  }
  return within(data, path, parsed(text.slice(at + 1)))
}

function within(data: Data, [step = "", ...rest]: string[], value: unknown): Data {
  if (rest.length === 0) return { ...data, [step]: value }
  const inner = data[step]
  const before = typeof inner === "object" && inner !== null ? (inner as Data) : {}
  return { ...data, [step]: within(before, rest, value) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
