import { and, eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import type { AccountRole } from "../identity/tables"
import { limitsOf } from "../plans/plans"
import type { Reader, Tx } from "../store/store"
import { type Caller, quotaSubject } from "./caller"
import { DEFAULTS, withDefaults } from "./project-settings"
import { scopesOf } from "./scopes"
import { activeProjects, findProject, findSeats } from "./seats"
import { accountMembers, consoleSessions, type ProjectRole } from "./tables"

/** Which account and project a console caller speaks of. */
export interface Wanted {
  /** From `X-Account-Id`. */
  account_id: string | null
  /** From the path, else from `X-Project-Id`. */
  project_id: string | null
  /** What the route cannot do without. */
  need: "user" | "account" | "project"
  /** Which of them may be on its way out, for the routes that show it or take it back. */
  of_deleted: "account" | "project" | undefined
}

/** Somebody whose session is alive, and every account he belongs to. */
export interface Person {
  caller: Caller
  mfa: boolean
  seats: Seat[]
}

type Seat = Awaited<ReturnType<typeof findSeats>>[number]

const ACCOUNT_DEFAULTS = { track_opens: true, track_clicks: true, require_mfa: false }

/** A caller whom nothing identifies, on routes that anybody may call. */
export const nobody = (ip: string): Caller => ({
  kind: "none",
  actor: { type: "system", id: null, name: null },
  key_id: null,
  user_id: null,
  session_id: null,
  account_id: "",
  project_id: "",
  scopes: [],
  domain_id: null,
  account_role: null,
  project_role: null,
  operator: false,
  ip_addresses: [],
  expires_at: null,
  plan: "",
  limits: limitsOf({ plan: "free", limits: null }),
  quota_subject: "",
  account_status: "active",
  sending_status: "active",
  sending_status_reason: null,
  project_settings: DEFAULTS,
  account_settings: ACCOUNT_DEFAULTS,
  ip,
})

/** Undefined for a session that is over or unknown, and for a user who is locked. */
export async function person(
  db: Reader,
  { user_id, session_id }: { user_id: string; session_id: string },
  ip: string,
): Promise<Person | undefined> {
  const seats = await findSeats(db, { session_id, user_id })
  const [one] = seats
  if (!one || one.revoked_at !== null || millisFrom(one.expires_at) <= millis()) return undefined
  if (one.user_status !== "active") return undefined
  const caller: Caller = {
    ...nobody(ip),
    kind: "console",
    actor: { type: "user", id: user_id, name: one.name ?? one.email },
    user_id,
    session_id,
    operator: one.operator,
  }
  return { caller, mfa: one.mfa_secret !== null, seats: seats.filter(({ role }) => role !== null) }
}

/**
 * The same person in the account that the request names, or in the only one there is. Throws 404
 * for an account of others, 422 `missing_required_field` where there are several to choose from.
 */
export function inAccount({ caller, seats }: Person, wanted: Wanted): Caller {
  if (wanted.need === "user") return caller
  const also_deleted = wanted.of_deleted === "account"
  const open = seats.filter(({ deleting_at }) => deleting_at === null || also_deleted)
  const seat = wanted.account_id
    ? open.find(({ account_id }) => account_id === wanted.account_id)
    : open[0]
  if (!seat && wanted.account_id) return fail("not_found", "There is no such account.")
  if (!seat)
    return fail(
      "forbidden",
      "You are not a member of any account. Make one, or ask for an invitation.",
      { required_role: "member" },
    )
  if (!wanted.account_id && open.length > 1) throw missing("X-Account-Id", "several accounts")
  return seated(caller, seat)
}

function seated(caller: Caller, seat: Seat): Caller {
  const { account_id, plan } = seat
  if (!account_id || !plan || !seat.settings) return caller
  const account = { id: account_id, plan, owner_user_id: seat.owner_user_id }
  return {
    ...caller,
    account_id,
    account_role: seat.role,
    plan,
    limits: limitsOf({ plan, limits: seat.limits }),
    quota_subject: quotaSubject(account),
    account_status: seat.account_status ?? "active",
    sending_status: seat.sending_status ?? "active",
    sending_status_reason: seat.sending_status_reason,
    account_settings: seat.settings,
  }
}

/**
 * As `inAccount`, for the project of the account. Throws 404 for one in which he has no role, and
 * for one that is being deleted: nothing works in it any more.
 */
export async function inProject(db: Reader, caller: Caller, wanted: Wanted): Promise<Caller> {
  const { account_id, user_id } = caller
  const { project_id } = wanted
  if (project_id !== null && !isUuid(project_id)) return noProject()
  const rows = project_id
    ? await findProject(db, { account_id, project_id, user_id: user_id ?? "" })
    : await activeProjects(db, { account_id, user_id: user_id ?? "" })
  const seen = rows.flatMap((row) => {
    if (row.status === "deleting" && wanted.of_deleted !== "project") return []
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
export function roleIn(account: AccountRole | null, own: ProjectRole | null): ProjectRole | null {
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

/** Throws 403 `mfa_required` where the account asks for a second factor and he has none. */
export function demandMfa({ account_settings }: Caller, { mfa }: Person) {
  if (!account_settings.require_mfa || mfa) return
  fail("mfa_required", "This account requires a second factor. Turn yours on first.")
}

const noProject = () => fail("not_found", "There is no such project.")

const missing = (header: string, among: string) =>
  new ApiError(
    "missing_required_field",
    `You have ${among}. Name one of them in the header ${header}.`,
    {
      header,
      field: header,
      reason: "The header is required.",
    },
  )
