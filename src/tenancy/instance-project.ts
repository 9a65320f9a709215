import { eq } from "drizzle-orm"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { accounts, projects } from "../identity/tables"
import type { Tx } from "../store/store"

/** No slug that a person may choose begins like this. */
export const INSTANCE_SLUG = "~belfry"

export interface InstanceProject {
  account_id: string
  project_id: string
}

/**
 * The instance's own project, from which it sends its own mail; made where there is none. Hidden,
 * and of an account without members: no key, no person and no list ever reaches what it holds.
 */
export async function instanceProject(tx: Tx): Promise<InstanceProject> {
  const known = await findInstance(tx)
  if (known) return known
  const times = { created_at: now(), updated_at: now() }
  const home = { id: newId(), name: "Belfry", slug: INSTANCE_SLUG, ...times }
  // Two nodes may come here together: the slug decides, and the loser reads what won.
  await tx
    .insert(accounts)
    .values({
      ...home,
      plan: "enterprise",
      settings: { track_opens: false, track_clicks: false, require_mfa: false },
      status: "active",
      sending_status: "active",
    })
    .onConflictDoNothing()
  const [account] = await tx.select().from(accounts).where(eq(accounts.slug, INSTANCE_SLUG))
  const project = { ...home, id: newId(), account_id: account?.id ?? home.id }
  await tx
    .insert(projects)
    .values({ ...project, status: "active", settings: {}, hidden: true })
    .onConflictDoNothing()
  return (await findInstance(tx)) ?? { account_id: project.account_id, project_id: project.id }
}

/** Undefined until the first mail of the instance. */
export async function findInstance(db: Pick<Tx, "select">): Promise<InstanceProject | undefined> {
  const [found] = await db
    .select({ account_id: projects.account_id, project_id: projects.id })
    .from(projects)
    .where(eq(projects.hidden, true))
    .limit(1)
  return found
}
