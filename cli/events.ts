import type { Client } from "./client"
import type { Action } from "./context"
import { usage } from "./failure"
import { follow, readFeed, type Start, startAt } from "./feed"
import { limitOf } from "./paging"
import type { Envelope } from "./records"
import { address } from "./records"
import type { Column } from "./table"
import { cleanLine, type Paint } from "./terminal"
import { age, clockTime, millis, moment } from "./time"

interface StartOptions {
  after?: string
  since?: string
}

interface ListOptions extends StartOptions {
  types?: string
  limit?: string
  follow?: boolean
}

const columns: Column<Envelope>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "TYPE", cell: ({ type }) => type },
  { title: "ABOUT", cell: (event) => subjectOf(event), flexible: true },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

export const list: Action<ListOptions> = async (context, options) => {
  const { output, paint } = context
  const client = context.client()
  const start = await startOf(client, options)
  if (!options.follow) {
    await output.list(await readFeed(client, start, options.types, limitOf(options.limit)), columns)
    return undefined
  }
  const deadline = context.timeout === undefined ? undefined : millis() + context.timeout
  for await (const event of follow(client, start, options.types, deadline)) {
    await output.line(event, () => eventLine(event, paint))
  }
  return undefined
}

/** Where `--after` or `--since` begins. */
export async function startOf(client: Client, { after, since }: StartOptions): Promise<Start> {
  if (after !== undefined && since !== undefined) throw usage("--after and --since: use one")
  if (since !== undefined) return await startAt(client, moment(since, "--since"))
  return { after, not_before: undefined }
}

/** `12:00:01.131 email.sent  0199a1c2-…  ann@mailbox.test`. */
export function eventLine(event: Envelope, paint: Paint): string {
  const about = cleanLine(subjectOf(event))
  return `${paint.dim(clockTime(event.created_at))} ${cleanLine(event.type).padEnd(18)} ${about}`
}

function subjectOf({ data }: Envelope): string {
  const id = data.email_id ?? data.message_id ?? data.id
  const to = data.recipient_email ?? data.to
  const whom = typeof to === "object" && to !== null && "email" in to ? String(to.email) : to
  const parts = [id, typeof whom === "string" ? address(whom) : undefined]
  return parts.filter((part) => typeof part === "string").join("  ")
}
