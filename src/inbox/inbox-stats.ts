import { and, eq, gte, lt, sum } from "drizzle-orm"
import { dayOf, today } from "../core/time"
import { readPeriod } from "../http/period"
import { adder } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { inboxDays } from "./tables"

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

/** What inboxes are counted by, each for the first time in the life of a message. */
export const INBOX_FACTS = ["created", "seen", "read", "archived"] as const

export type InboxFact = (typeof INBOX_FACTS)[number]

/** Counts facts of today. */
export const countFacts = (tx: Tx, list: { project_id: string; fact: InboxFact }[]) =>
  addToDays(
    tx,
    list.map((one) => ({ ...one, day: today(), messages: 1 })),
  )

const addToDays = adder(inboxDays, ["project_id", "day", "fact"], ["messages"], SHARDS)

/** How many messages were created, seen, read and archived first in a period. Throws 422 for what is none. */
export async function stats(db: Reader, project_id: string, asked: string | undefined) {
  const period = readPeriod(asked)
  const { day, fact, messages } = inboxDays
  const ours = and(
    eq(inboxDays.project_id, project_id),
    gte(day, dayOf(period.start)),
    lt(day, dayOf(period.end)),
  )
  const sums = { fact, messages: sum(messages).mapWith(Number) }
  const rows = await db.select(sums).from(inboxDays).where(ours).groupBy(fact)
  const of = (wanted: InboxFact) => rows.find((row) => row.fact === wanted)?.messages ?? 0
  return {
    period,
    ...{ created: of("created"), seen: of("seen"), read: of("read"), archived: of("archived") },
  }
}
