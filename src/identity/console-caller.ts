import { and, eq, type SQL } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { isPast, now } from "../core/time"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { accountFacts, type Caller, nobody, withDefaults } from "./caller"
import { scopesOf } from "./scopes"
import {
  type AccountRole,
  accountMembers,
  accounts,
  consoleSessions,
  consoleUsers,
  type ProjectRole,
  projectMembers,
  projects,
} from "./tables"

/** Which account and project a console caller speaks of. */
export interface NamedScope {
  /** From `X-Account-Id`. */
  account_id: string | null
  /** From the path, else from `X-Project-Id`. */
  project_id: string | null
  /** What the route cannot do without. */
  need: "user" | "account" | "project"
  /** Which of them may be on its way out, for the routes that show it or take it back. */
  of_deleted: "account" | "project" | undefined
}

/** A user with a live session, and every account of the user. */
export interface SignedIn {
  caller: Caller
  mfa: boolean
  seats: { role: AccountRole; account: typeof accounts.$inferSelect }[]
}

/** Undefined for a session that is over or unknown, and for a locked user. */
export async function person(
  db: Reader,
  { user_id, session_id }: { user_id: string; session_id: string },
  ip: string,
): Promise<SignedIn | undefined> {
  const rows = await findSeats(db, { session_id, user_id })
  const [one] = rows
  if (!one || one.session.revoked_at !== null || isPast(one.session.expires_at)) return undefined
  const { user } = one
  if (user.status !== "active") return undefined
  const caller: Caller = {
    ...nobody(ip),
    kind: "console",
    actor: { type: "user", id: user_id, name: user.name ?? user.email },
    user_id,
    session_id,
    operator: user.operator,
  }
  const seats = rows.flatMap(({ role, account }) => (role && account ? [{ role, account }] : []))
  return { caller, mfa: user.mfa_secret !== null, seats }
}

/**
 * The same person in the account that the request names, or in the only one there is. Throws 404
 * for an account of others, 422 `missing_required_field` where there are several to choose from.
 */
export function inAccount({ caller, seats }: SignedIn, named: NamedScope): Caller {
  if (named.need === "user") return caller
  const also_deleted = named.of_deleted === "account"
  const open = seats.filter(({ account }) => account.deleting_at === null || also_deleted)
  const seat = named.account_id
    ? open.find(({ account }) => account.id === named.account_id)
    : open[0]
  if (!seat && named.account_id) return fail("not_found", "There is no such account.")
  if (!seat)
    return fail(
      "forbidden",
      "You are not a member of any account. Make one, or ask for an invitation.",
      { required_role: "member" },
    )
  if (!named.account_id && open.length > 1) throw missing("X-Account-Id", "several accounts")
  return { ...caller, ...accountFacts(seat.account), account_role: seat.role }
}

/**
 * As `inAccount`, for the project of the account. Throws 404 for one without a role, and
 * for one that is being deleted: nothing works in it any more.
 */
export async function inProject(db: Reader, caller: Caller, named: NamedScope): Promise<Caller> {
  const { account_id, user_id } = caller
  const { project_id } = named
  if (project_id !== null && !isUuid(project_id)) return noProject()
  const rows = project_id
    ? await findProject(db, { account_id, project_id, user_id: user_id ?? "" })
    : await activeProjects(db, { account_id, user_id: user_id ?? "" })
  const seen = rows.flatMap((row) => {
    if (row.status === "deleting" && named.of_deleted !== "project") return []
    const role = roleIn(caller.account_role, row.role)
    return role ? [{ ...row, role }] : []
  })
  const [project] = seen
  if (project_id !== null && !project) return noProject()
  if (!project) {
    return fail(
      "forbidden",
      "You have no role in any project. Ask an admin of the account for one.",
      {
        required_role: "project_viewer",
      },
    )
  }
  if (seen.length > 1) throw missing("X-Project-Id", "several projects")
  return {
    ...caller,
    project_id: project.id,
    project_role: project.role,
    scopes: scopesOf(project.role),
    project_settings: withDefaults(project.settings),
  }
}

/** Owners and admins of an account are admins of its projects; Billing Admins never enter one. */
function roleIn(account: AccountRole | null, own: ProjectRole | null): ProjectRole | null {
  if (account === "owner" || account === "admin") return "admin"
  return account === "member" ? own : null
}

/** Remembers when the session and the seat were last used; at most once a minute, by the guard. */
export async function touch(tx: Tx, { session_id, user_id, account_id }: Caller) {
  const own = eq(consoleSessions.id, session_id ?? "")
  await tx.update(consoleSessions).set({ last_used_at: now() }).where(own)
  if (!account_id || !user_id) return
  const seat = and(eq(accountMembers.account_id, account_id), eq(accountMembers.user_id, user_id))
  await tx.update(accountMembers).set({ last_active_at: now() }).where(seat)
}

/** Throws 403 `mfa_required` where the account asks for a second factor and the person has none. */
export function requireMfa({ account_settings }: Caller, { mfa }: SignedIn) {
  if (!account_settings.require_mfa || mfa) return
  fail("mfa_required", "This account requires a second factor. Turn yours on first.")
}

const noProject = () => fail("not_found", "There is no such project.")

export const missing = (header: string, among: string) =>
  new ApiError(
    "missing_required_field",
    `You have ${among}. Name one of them in the header ${header}.`,
    {
      header,
      field: header,
      reason: "The header is required.",
    },
  )

const { id: session_id, user_id } = consoleSessions

/** One row for each account of the user, and one without an account for a user without any. */
const findSeats = prepared({ session_id, user_id }, (db: Reader, slot) =>
  db
    .select({
      session: consoleSessions,
      user: consoleUsers,
      role: accountMembers.role,
      account: accounts,
    })
    .from(consoleSessions)
    .innerJoin(consoleUsers, eq(consoleUsers.id, user_id))
    .leftJoin(accountMembers, eq(accountMembers.user_id, user_id))
    .leftJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(and(eq(session_id, slot.session_id), eq(user_id, slot.user_id))),
)

const { id: project_id, account_id } = projects
const member = projectMembers.user_id

/** Projects of people, each with the user's own role in it, if there is one. */
const projectsWithRole = (db: Reader, member_id: SQL<string>, which: SQL | undefined) =>
  db
    .select({
      id: projects.id,
      status: projects.status,
      settings: projects.settings,
      role: projectMembers.role,
    })
    .from(projects)
    .leftJoin(
      projectMembers,
      and(eq(projectMembers.project_id, projects.id), eq(member, member_id)),
    )
    .where(and(which, eq(projects.hidden, false)))

const findProject = prepared({ account_id, project_id, user_id: member }, (db: Reader, slot) =>
  projectsWithRole(
    db,
    slot.user_id,
    and(eq(project_id, slot.project_id), eq(account_id, slot.account_id)),
  ),
)

/** A project that is being deleted is only reached by its id. */
const activeProjects = prepared({ account_id, user_id: member }, (db: Reader, slot) =>
  projectsWithRole(
    db,
    slot.user_id,
    and(eq(account_id, slot.account_id), eq(projects.status, "active")),
  ),
)
