import { eq } from "drizzle-orm"
import { isAllowed } from "../http/cors"
import type { AllowedOrigins } from "../identity/caller"
import { accounts, projects } from "../identity/tables"
import { gathered } from "../store/batcher"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { subscribers } from "../subscribers/tables"
import { isAlive, originsOf } from "./inbox-tokens"
import type { InboxTotals } from "./ledger"
import { inboxes } from "./tables"

/** Whether the socket of a subscriber may be open, as far as its project and the subscriber say. */
export interface InboxBearer {
  project_id: string
  is_blocked: boolean
  allowed_origins: AllowedOrigins
  /** Of the inbox; null where it never had a message. */
  counts: InboxTotals | null
}

/** Subscribers of living projects by their ids. One that is gone is left out. */
export async function bearersAmong(db: Reader, ids: string[]): Promise<Map<string, InboxBearer>> {
  const found = new Map<string, InboxBearer>()
  for (const row of await findBearers(db, { ids })) {
    const { id, status, project, account, counts } = row
    if (!isAlive(row)) continue
    found.set(id, {
      project_id: project.id,
      is_blocked: status === "blocked" || account.status !== "active",
      allowed_origins: originsOf(project.settings),
      counts,
    })
  }
  return found
}

/** One of them. Many that sign in at once share the query. */
export const bearerOf = gathered<string, InboxBearer | undefined>(async (db, ids) => {
  const found = await bearersAmong(db, ids)
  return ids.map((id) => found.get(id))
})

/** Why a socket may not be open; undefined where it may. `origin` is that of its page. */
export function refusalOf(
  bearer: InboxBearer | undefined,
  origin: string | null,
): "unauthorized" | "forbidden" | undefined {
  if (!bearer) return "unauthorized"
  const is_admitted = origin === null || isAllowed(origin, bearer.allowed_origins)
  return bearer.is_blocked || !is_admitted ? "forbidden" : undefined
}

const { id, settings, status, hidden } = projects
const { deleting_at } = accounts
const { unread, unseen, total } = inboxes

const findBearers = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select({
      id: subscribers.id,
      status: subscribers.status,
      project: { id, settings, status, hidden },
      account: { deleting_at, status: accounts.status },
      counts: { unread, unseen, total },
    })
    .from(subscribers)
    .innerJoin(projects, eq(projects.id, subscribers.project_id))
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .leftJoin(inboxes, eq(inboxes.id, subscribers.id))
    .where(isAmong(db, subscribers.id, slot.ids)),
)
