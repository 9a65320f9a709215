import { and, asc, count, eq, gte, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { dayOf, isoFrom, millisFrom, today } from "../core/time"
import { projects } from "../identity/tables"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { countedProvider, dayCounts } from "../messages/day-counts"
import { lastDeletedDay } from "../messages/reconcile"
import { countsByDay } from "../messages/status-changes"
import { type ChannelName, messages } from "../messages/tables"
import { lengthOf } from "../store/columns"
import { rowById, SKEW_MS } from "../store/rows"
import type { Reader } from "../store/store"
import { rangesOf } from "./counted-rows"

const DAY_MILLISECONDS = 86_400_000

/** Messages of one step. */
const STEP = 500

interface Recount {
  /** Called after each step. */
  pause: () => Promise<void>
  /** ISO 8601. Only whole days after it. */
  since: string | null
}

/** What is wrong with the counts of messages by day, told by the messages themselves, in words. */
export async function* wrongDays(
  db: Reader,
  project_id: string,
  { pause, since }: Recount,
): AsyncGenerator<string> {
  for (const channel of AUDIENCE_CHANNELS.filter(countsByDay)) {
    const from = await firstWholeDay(db, { project_id, channel }, since)
    const counted = new Map<string, string>()
    for (const row of await dayCounts(db, { project_id, channel, from }))
      if (row.messages !== 0 || row.units !== 0) counted.set(nameOf(row), textOf(row))
    const told = await toldBy(db, { project_id, channel, from }, pause)
    for (const name of new Set([...counted.keys(), ...told.keys()])) {
      const [is, should] = [counted.get(name) ?? NONE, told.get(name) ?? NONE]
      if (is !== should)
        yield `The count of ${channel} of ${name} is ${is}, but its rows give ${should}.`
    }
  }
}

interface Counted {
  day: string
  status: string
  provider: string
  messages: number
  units: number
}

const nameOf = ({ day, status, provider }: Counted) => `${day} ${status} ${provider}`.trim()

const textOf = ({ messages, units }: Pick<Counted, "messages" | "units">) =>
  `${messages} with ${units} units`

const NONE = textOf({ messages: 0, units: 0 })

interface OfChannel {
  project_id: string
  channel: ChannelName
}

/** Retention has left all messages of this day and of those after it. */
async function firstWholeDay(db: Reader, { project_id, channel }: OfChannel, since: string | null) {
  const project = await rowById(db, projects, project_id)
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, channel))
  const oldest = db.select({ created_at: messages.created_at }).from(messages).where(ours)
  const [first] = await oldest.orderBy(asc(messages.id)).limit(1)
  const days = [lastDeletedDay(project?.settings ?? {}), dayOf(since ?? "1970-01-01")].map(dayAfter)
  // The day of the oldest may lack some, unless it is today.
  if (first && dayOf(first.created_at) !== today()) days.push(dayAfter(dayOf(first.created_at)))
  return days.sort().at(-1) ?? ""
}

const dayAfter = (day: string) => dayOf(isoFrom(millisFrom(day) + DAY_MILLISECONDS))

async function toldBy(
  db: Reader,
  { project_id, channel, from }: OfChannel & { from: string },
  pause: () => Promise<void>,
): Promise<Map<string, string>> {
  const start = millisFrom(from)
  const where = and(
    eq(messages.project_id, project_id),
    eq(messages.channel, channel),
    gte(messages.created_at, isoFrom(start)),
  )
  const { status } = messages
  const day = sql<number>`${messages.created_at} / ${sql.raw(String(DAY_MILLISECONDS))}`
  const provider = countedProvider(channel)
  const units = sql<number>`SUM(COALESCE(${messages.units}, ${lengthOf(db, messages.recipients)}))`
  const sums = new Map<string, Counted>()
  const first = firstIdAt(start - SKEW_MS)
  for await (const { rows } of rangesOf(db, messages.id, { where, step: STEP, pause, first })) {
    const some = db.select({ day, status, provider, messages: count(), units }).from(messages)
    for (const row of await some.where(rows).groupBy(day, status, provider)) {
      const found = { ...row, day: dayOf(isoFrom(Number(row.day) * DAY_MILLISECONDS)) }
      const known = sums.get(nameOf(found))
      sums.set(nameOf(found), {
        ...found,
        messages: found.messages + (known?.messages ?? 0),
        units: Number(found.units) + (known?.units ?? 0),
      })
    }
  }
  return new Map([...sums].map(([name, one]) => [name, textOf(one)]))
}
