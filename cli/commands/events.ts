import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { follow, readFeed, readLatest, type Start, serverTime, startAt } from "../lib/feed"
import { flag, type OptionWords } from "../lib/field-flags"
import { AFTER, EVENT, LIMIT, ONLY_EVENT, SINCE } from "../lib/flags"
import { jsonOrText, parsedObject, placed } from "../lib/input"
import { NoUpgrade } from "../lib/live-socket"
import { limitOf } from "../lib/paging"
import { ID, own, row } from "../lib/resource"
import { EventStream, notifyLink } from "../lib/stream"
import { address, ago, type Columns, fields, idColumn, lineId, shortId, wide } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { clockTime, millis, moment } from "../lib/time"

type EventEnvelope = Components["EventEnvelope"]

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

const columns: Columns<EventEnvelope> = {
  ID: idColumn("event"),
  TYPE: "type",
  TO: wide(recipientOf, "last"),
  ABOUT: wide(aboutOf, "first"),
  AGE: { cell: ago(({ created_at }) => created_at), spare: 1 },
}

const list: Action<ListOptions> = async (context, options) => {
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
  const show = (event: EventEnvelope) => context.output.line(event, () => eventLine(event, context))
  const deadline = context.timeout === undefined ? undefined : millis() + context.timeout
  let start = await startOf(client, options)
  if (!isFeed(options)) {
    const past = await readLatest(client, sinceOf(options), types, limit)
    for (const event of past.toReversed()) await show(event)
    start = { after: past[0]?.id, not_before: start.not_before }
  }
  for await (const event of follow(client, start, types, deadline)) await show(event)
}

/** Where `--after` or `--since` begins. */
async function startOf(client: Client, { after, since }: StartOptions): Promise<Start> {
  if (after !== undefined && since !== undefined) throw usage("--after and --since: use one")
  if (since !== undefined) return await startAt(client, moment(since, "--since"))
  return { after, not_before: undefined }
}

/** `12:00:01.131 email.sent  0199a1c2-…  ann@mailbox.test`, the id by its end on a narrow terminal. */
export function eventLine(event: EventEnvelope, { paint, terminal }: Lines): string {
  const time = paint.dim(clockTime(event.created_at))
  const about = subjectOf(event, (id) => lineId(id, terminal))
  return `${time} ${cleanLine(event.type).padEnd(18)} ${cleanLine(about)}`
}

type Lines = Pick<Context, "paint" | "terminal">

const subjectOf = (event: EventEnvelope, brief?: (id: string) => string): string =>
  [idOf(event, brief), recipientOf(event), markOf(event)].filter(Boolean).join("  ")

function aboutOf(event: EventEnvelope): string {
  return [idOf(event, shortId), markOf(event)].filter(Boolean).join("  ")
}

function idOf({ data }: EventEnvelope, brief = (id: string) => id): string | undefined {
  const id =
    data.email_id ??
    data.sms_message_id ??
    data.push_message_id ??
    data.inbox_message_id ??
    data.message_id ??
    data.webhook_id ??
    data.id
  return typeof id === "string" ? brief(id) : undefined
}

/** Of a text that came in, the person that wrote it. */
function recipientOf({ type, data }: EventEnvelope): string | undefined {
  const own = type.startsWith("inbox.") ? data.external_id : undefined
  const named = data.recipient_email ?? data.to ?? data.device_id ?? own
  const to = type === "sms.received" ? data.from : named
  const whom = typeof to === "object" && to !== null && "email" in to ? String(to.email) : to
  return typeof whom === "string" ? address(whom) : undefined
}

const LONGEST_TEXT = 60

/** A text that came in says what it says, because answers are short. */
function markOf({ type, data }: EventEnvelope): string | undefined {
  const text = type === "sms.received" ? String(data.body ?? "").slice(0, LONGEST_TEXT) : ""
  return [text, data.simulated === true ? "simulated" : ""].filter(Boolean).join("  ") || undefined
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
  show: (event: EventEnvelope) => Promise<boolean>
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
  const show = async (event: EventEnvelope) => {
    if (left > 0) await output.line(event, () => eventLine(event, context))
    left -= 1
    return left > 0
  }
  const onState = notifyLink(context)
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
}

async function overStream({ client, start, types, timeout, onState, show }: Tail): Promise<void> {
  const stream = new EventStream(client, {
    start,
    types,
    onState,
    timeout,
    onFrame: async (frame) => {
      if (frame.type === "event" && !(await show(frame.event))) stream.close()
    },
  })
  await stream.ended
}

async function byAsking({ client, start, types, timeout, show }: Tail): Promise<void> {
  const deadline = timeout === undefined ? undefined : millis() + timeout
  for await (const event of follow(client, start, types, deadline)) {
    if (!(await show(event))) return
  }
}

/** `user.email=kim@example.com`: dots lead inside. What reads as JSON is taken as that. */
function overridden(data: Record<string, unknown>, text: string): Record<string, unknown> {
  if (text.trimStart().startsWith("{")) return { ...data, ...parsedObject(text, "--override") }
  const at = text.indexOf("=")
  const path = text.slice(0, Math.max(0, at)).split(".")
  if (path.includes("")) throw usage(`--override: "${text}" is neither k=v nor a JSON object`)
  return placed(data, path, jsonOrText(text.slice(at + 1)))
}

const START: readonly OptionWords[] = [AFTER, SINCE, [EVENT, ONLY_EVENT, "several"]]

export const eventRows = [
  own("list", list, {
    about: "list the latest events, newest first",
    example: ["--event email.bounced --since 1d", "--follow --ndjson"],
    options: [
      ["--oldest", "list the oldest events first, from the beginning of the feed"],
      ...START,
      LIMIT,
      ["--follow", "then print new events as they arrive, one per line"],
    ],
  }),
  own("tail", tail, {
    about: "follow events without a gap, until Ctrl-C",
    example: ["", "--event email.bounced | jq .data"],
    options: [...START, ["--limit <number>", "end after this number of events"]],
  }),
  row("get <id>", "GET /v1/events/{event_id}", {
    about: "show one event in the form that webhooks carry",
    word: `evt_${ID}`,
    shown: ({ data, id, type, created_at: created }, paint) =>
      `${fields(Object.entries({ id, type, created }), paint)}\n\n${JSON.stringify(data, null, 2)}`,
  }),
  row("types", "GET /v1/webhooks/events", {
    about: "list the event types; --json adds their fields and examples",
    example: "--category email",
    columns: {
      TYPE: "type",
      CATEGORY: "category",
      WHEN: wide(({ description }) => description),
    },
  }),
]

/** A marked event through the real path: stored, routed and delivered like any other. */
export const triggerRow = row("trigger <type>", "POST /v1/events/trigger", {
  about: "create a simulated event to test receivers",
  word: "email.bounced",
  example: ["--override recipient_email=kim@example.com", ""],
  flags: {
    data: flag(
      ["--override <pair>", "field to change, as k=v, a.b=v or JSON; may be repeated", "several"],
      (given: string[]) => given.reduce(overridden, {}),
    ),
  },
  done: ({ type, id }) => `${type} ${id}`,
  next: () => "webhooks list",
})
