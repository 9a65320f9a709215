import type { Client } from "./client"
import type { Action, Context } from "./context"
import { usage } from "./failure"
import { follow, readFeed, readLatest, type Start, startAt } from "./feed"
import { limitOf } from "./paging"
import type { Envelope } from "./records"
import { address } from "./records"
import { type Column, idColumn, lineId, shortId } from "./table"
import { cleanLine } from "./terminal"
import { age, clockTime, millis, moment } from "./time"

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
