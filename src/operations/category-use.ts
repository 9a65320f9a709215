import { and, desc, eq, isNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { fanOuts } from "../fan-out/tables"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { CategoryRow } from "../subscribers/categories"

/** Of the newest messages that wait: a longer look would hold up others. */
const MOST_WAITING = 10_000

/** Of the publishes that are not over. */
const MOST_OPEN = 1000

/** Throws 409 `conflict` where a message that waits, or a publish that is not over, names the category. */
export async function refuseUsed(db: Reader, { project_id, slug }: CategoryRow): Promise<void> {
  const user = (await openPublish(db, project_id, slug)) ?? (await waiting(db, project_id, slug))
  if (!user) return
  const text = `The ${user.type} ${user.id} still uses the category ${slug}. Cancel it, or wait for its end.`
  fail("conflict", text, { reason: "used", ...user })
}

async function openPublish(db: Reader, project_id: string, slug: string) {
  const open = await db
    .select({ id: fanOuts.id, intent: fanOuts.intent })
    .from(fanOuts)
    .where(and(eq(fanOuts.project_id, project_id), isNull(fanOuts.completed_at)))
    .limit(MOST_OPEN)
  const found = open.find(({ intent }) => intent.category === slug)
  return found && { type: "publish", id: found.id }
}

async function waiting(db: Reader, project_id: string, slug: string) {
  const queued = db
    .select({ id: messages.id, category: messages.category })
    .from(messages)
    .where(and(eq(messages.project_id, project_id), eq(messages.status, "queued")))
    .orderBy(desc(messages.id))
    .limit(MOST_WAITING)
    .as("queued")
  const [found] = await db.select().from(queued).where(eq(queued.category, slug)).limit(1)
  return found && { type: "message", id: found.id }
}
