import { and, eq } from "drizzle-orm"
import { accounts } from "../identity/tables"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { accountMembers, consoleSessions, consoleUsers, projectMembers, projects } from "./tables"

const { id: session_id, user_id } = consoleSessions

/** One row an account of the user; one without an account where he belongs to none. */
export const findSeats = prepared({ session_id, user_id }, (db: Reader, slot) =>
  db
    .select({
      expires_at: consoleSessions.expires_at,
      revoked_at: consoleSessions.revoked_at,
      email: consoleUsers.email,
      name: consoleUsers.name,
      operator: consoleUsers.operator,
      user_status: consoleUsers.status,
      mfa_secret: consoleUsers.mfa_secret,
      role: accountMembers.role,
      account_id: accounts.id,
      plan: accounts.plan,
      limits: accounts.limits,
      owner_user_id: accounts.owner_user_id,
      deleting_at: accounts.deleting_at,
      account_status: accounts.status,
      settings: accounts.settings,
      sending_status: accounts.sending_status,
      sending_status_reason: accounts.sending_status_reason,
    })
    .from(consoleSessions)
    .innerJoin(consoleUsers, eq(consoleUsers.id, user_id))
    .leftJoin(accountMembers, eq(accountMembers.user_id, user_id))
    .leftJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(and(eq(session_id, slot.session_id), eq(user_id, slot.user_id))),
)

const project_columns = {
  id: projects.id,
  status: projects.status,
  settings: projects.settings,
  role: projectMembers.role,
}

const { id: project_id, account_id } = projects
const member = projectMembers.user_id

/** With the user's own role in it, if he has one. */
export const findProject = prepared(
  { account_id, project_id, user_id: member },
  (db: Reader, slot) =>
    db
      .select(project_columns)
      .from(projects)
      .leftJoin(
        projectMembers,
        and(eq(projectMembers.project_id, projects.id), eq(member, slot.user_id)),
      )
      .where(
        and(
          eq(project_id, slot.project_id),
          eq(account_id, slot.account_id),
          eq(projects.hidden, false),
        ),
      ),
)

/** One that may be deleted is only reached by its id. */
export const activeProjects = prepared({ account_id, user_id: member }, (db: Reader, slot) =>
  db
    .select(project_columns)
    .from(projects)
    .leftJoin(
      projectMembers,
      and(eq(projectMembers.project_id, projects.id), eq(member, slot.user_id)),
    )
    .where(
      and(
        eq(account_id, slot.account_id),
        eq(projects.status, "active"),
        eq(projects.hidden, false),
      ),
    ),
)
