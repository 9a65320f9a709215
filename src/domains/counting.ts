import { count, eq } from "drizzle-orm"
import type { Reader } from "../store/store"
import { domains } from "./tables"

/** How many domains each project of an account has; projects without any are not in it. */
export async function countByProject(db: Reader, account_id: string): Promise<Map<string, number>> {
  const rows = await db
    .select({ project_id: domains.project_id, used: count() })
    .from(domains)
    .where(eq(domains.account_id, account_id))
    .groupBy(domains.project_id)
  return new Map(rows.map(({ project_id, used }) => [project_id, used]))
}
