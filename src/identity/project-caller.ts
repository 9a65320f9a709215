import { and, eq, isNull } from "drizzle-orm"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { accountFacts, type Caller, nobody, withDefaults } from "./caller"
import { accounts, projects } from "./tables"

/**
 * The project itself, with the limits of its account: for what it sends without a request. Undefined where
 * the account is not active, and where one of the two is being deleted.
 */
export async function projectCaller(db: Reader, project_id: string): Promise<Caller | undefined> {
  const [found] = await findProject(db, { id: project_id })
  if (!found) return undefined
  const { account, settings } = found
  const project_settings = withDefaults(settings)
  return { ...nobody(""), ...accountFacts(account), project_id, project_settings }
}

const findProject = prepared({ id: projects.id }, (db: Reader, slot) =>
  db
    .select({ account: accounts, settings: projects.settings })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(
      and(
        eq(projects.id, slot.id),
        eq(projects.status, "active"),
        eq(accounts.status, "active"),
        isNull(accounts.deleting_at),
      ),
    ),
)

/** The code that a request of a project gets of which `projectCaller` is undefined. */
export async function codeOfSilence(
  db: Reader,
  project_id: string,
): Promise<"account_locked" | "account_suspended" | "unauthorized"> {
  const [found] = await db
    .select({ status: accounts.status })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(eq(projects.id, project_id))
  if (found?.status === "locked") return "account_locked"
  return found?.status === "suspended" ? "account_suspended" : "unauthorized"
}
