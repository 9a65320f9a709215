import type { Static } from "@sinclair/typebox"
import { and, eq, inArray, sql } from "drizzle-orm"
import { fail } from "../../core/errors"
import { newId } from "../../core/ids"
import { now } from "../../core/time"
import type { Caller } from "../../identity/caller"
import { enqueue } from "../../jobs/jobs"
import { fieldsOf } from "../../lib/record-fields"
import { partOf, slugFrom } from "../../lib/text"
import { bumpAll, total, totals } from "../../store/counters"
import { boundedList, type RowList } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import { type EndUserRow, findForUpdate, holdIdentifiers } from "../end-users"
import type { AuthEnvironment } from "../environments"
import {
  countsOf,
  insertOrganization,
  membersIn,
  noOrganization,
  type OrganizationRow,
  ofEnvironment,
  organizationIn,
  organizationsIn,
  removeSomeMembers,
  searchKeyOf,
} from "../organization-rows"
import { environments } from "../tables"
import { joinOrganization } from "./join"
import {
  findOrganization,
  isDefault,
  organizationForUpdate,
  recordOrganization,
  refuseDefault,
  requirePlanFor,
  requireWritable,
} from "./organization-access"
import {
  Organization,
  type OrganizationChanges,
  type OrganizationInput,
} from "./organization-schemas"
import { organizationDeleted } from "./removed-organizations"
import { memberships, organizations } from "./tables"

type OrganizationRecord = Static<typeof Organization>

interface OrganizationFilter {
  /** Only those of this user, with their role. */
  user_id?: string | undefined
  /** A part of the name or the slug, in any case. */
  q?: string | undefined
}

/** The organizations of an environment, newest first. */
export function list(
  db: Reader,
  environment: AuthEnvironment,
  { user_id, q }: OrganizationFilter,
): RowList<OrganizationRecord> {
  const { id, project_id } = environment
  const along =
    user_id === undefined
      ? { rows: organizations, id: organizations.id, where: ofEnvironment(environment) }
      : {
          rows: memberships,
          id: memberships.organization_id,
          where: eq(memberships.user_id, user_id),
        }
  const filter =
    q === undefined ? undefined : sql`${organizations.search_key} LIKE ${partOf(q)} ESCAPE '\\'`
  const wanted = { owner: project_id, table: organizations, along, filter }
  const rows = boundedList<OrganizationRow>(db, wanted)
  const is_counted = user_id === undefined && q === undefined
  return {
    ...rows,
    ...(is_counted && { total: () => total(db, project_id, organizationsIn(id)) }),
    find: (id) => organizationIn(db, environment, id),
    async list(window) {
      const found = await rows.list(window)
      return { ...found, rows: await shownAll(db, environment, found.rows, user_id) }
    },
  }
}

/** The record of the contract, with the role of the user where the caller is one. */
export async function shown(
  db: Reader,
  { end_user }: Caller,
  environment: AuthEnvironment,
  row: OrganizationRow,
): Promise<OrganizationRecord> {
  const [record = noOrganization()] = await shownAll(db, environment, [row], end_user?.id)
  return record
}

async function shownAll(
  db: Reader,
  { name: environment, project_id, default_organization_id }: AuthEnvironment,
  rows: OrganizationRow[],
  user_id: string | undefined,
): Promise<OrganizationRecord[]> {
  const ids = rows.map(({ id }) => id)
  const members = await totals(db, project_id, ids.map(membersIn))
  const roles = user_id === undefined ? undefined : await rolesOf(db, user_id, ids)
  return rows.map((row) => {
    const { id } = row
    const is_default = id === default_organization_id
    const member_count = members.get(membersIn(id)) ?? 0
    const record = fieldsOf(Organization, { ...row, environment, is_default, member_count })
    const role = roles?.get(id)
    return role === undefined ? record : { ...record, role }
  })
}

async function rolesOf(db: Reader, user_id: string, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const { organization_id, role } = memberships
  const own = and(eq(memberships.user_id, user_id), inArray(organization_id, ids))
  const rows = await db.select({ organization_id, role }).from(memberships).where(own)
  return new Map(rows.map((row) => [row.organization_id, row.role]))
}

/**
 * A new organization. A user becomes its owner; one that a server makes has nobody. Throws 403 `forbidden` where
 * users make none, 403 `plan_upgrade_required`, 409 `conflict` for a slug that is taken.
 */
export async function create(
  tx: Tx,
  caller: Caller,
  environment: AuthEnvironment,
  { name, slug, metadata = {} }: OrganizationInput,
): Promise<OrganizationRecord> {
  const user = await makerIn(tx, caller, environment)
  await holdIdentifiers(tx, environment)
  await requirePlanFor(tx, caller, environment)
  if (slug !== undefined) await requireFreeSlug(tx, environment, slug)
  const { id: environment_id, project_id, application } = environment
  const at = now()
  const row = await insertOrganization(tx, {
    ...{ id: newId(), project_id, application_id: application.id, environment_id },
    ...{ name, slug: slug ?? (await freeSlug(tx, environment, name)), metadata },
    ...{ mfa_required: false, allowed_email_domains: [], created_at: at, updated_at: at },
  })
  if (user) await joinOrganization(tx, user, row, "owner")
  const record = await shown(tx, caller, environment, row)
  await recordOrganization(tx, caller, row, "created", { after: record })
  return record
}

/** The user that makes it, locked. */
async function makerIn(
  tx: Tx,
  { end_user, project_id }: Caller,
  { settings }: AuthEnvironment,
): Promise<EndUserRow | undefined> {
  if (!end_user) return undefined
  if (settings.organization_creation === "members")
    return findForUpdate(tx, project_id, end_user.id)
  const text = "Users of this environment make no organizations."
  return fail("forbidden", text, { reason: "organization_creation" })
}

async function freeSlug(db: Reader, environment: AuthEnvironment, name: string): Promise<string> {
  const wish = slugFrom(name) || "organization"
  const taken = await withSlug(db, environment, wish)
  return taken ? `${wish}-${newId().slice(-8)}` : wish
}

/** Throws 409 `conflict`. The environment is locked, so that no two take one at once. */
async function requireFreeSlug(db: Reader, environment: AuthEnvironment, slug: string, but = "") {
  const taken = await withSlug(db, environment, slug)
  if (!taken || taken.id === but) return
  const text = `Another organization of this environment has the slug ${slug}. Choose another slug.`
  fail("conflict", text, { reason: "slug_taken" })
}

async function withSlug(db: Reader, environment: AuthEnvironment, slug: string) {
  const [row] = await db
    .select({ id: organizations.id })
    .from(organizations)
    .where(and(ofEnvironment(environment), eq(organizations.slug, slug)))
  return row
}

/**
 * Changes what is given. Members stay, also where the domains leave them out. Throws 409 `conflict` for a slug that is
 * taken, 403 `plan_upgrade_required`.
 */
export async function change(
  tx: Tx,
  caller: Caller,
  id: string,
  changes: OrganizationChanges,
): Promise<OrganizationRecord> {
  const { environment } = await findOrganization(tx, caller, id, "admin")
  await holdIdentifiers(tx, environment)
  const found = await organizationForUpdate(tx, caller, id, "admin")
  const { organization: before } = found
  await requireWritable(tx, caller, found)
  if (changes.slug !== undefined) await requireFreeSlug(tx, environment, changes.slug, id)
  const first = await shown(tx, caller, environment, before)
  const wanted = { ...before, ...changes, updated_at: now() }
  const after = { ...wanted, search_key: searchKeyOf(wanted) }
  const { updated_at, search_key } = after
  await tx
    .update(organizations)
    .set({ ...changes, updated_at, search_key })
    .where(itself(before))
  const { allowed_email_domains } = changes
  if (allowed_email_domains && isDefault(found)) {
    const own = and(
      eq(environments.project_id, environment.project_id),
      eq(environments.id, environment.id),
    )
    await tx.update(environments).set({ allowed_email_domains }).where(own)
  }
  const record = await shown(tx, caller, environment, after)
  await recordOrganization(tx, caller, after, "updated", { before: first, after: record })
  return record
}

const itself = ({ id, project_id }: OrganizationRow) =>
  and(eq(organizations.project_id, project_id), eq(organizations.id, id))

/**
 * Deletes it: nobody finds it from now on, and its sessions move to Default at their next refresh. A job removes what
 * many members and invitations leave. Throws 409 `conflict` for the Default organization.
 */
export async function remove(tx: Tx, caller: Caller, id: string): Promise<void> {
  const found = await organizationForUpdate(tx, caller, id, "owner")
  const { organization, environment } = found
  if (isDefault(found)) refuseDefault("Every user is a member of it. It cannot be deleted.")
  const before = await shown(tx, caller, environment, organization)
  await tx.delete(organizations).where(itself(organization))
  await bumpAll(tx, countsOf(organization, -1))
  await removeSomeMembers(tx, eq(memberships.organization_id, id))
  const { project_id } = organization
  await enqueue(tx, organizationDeleted, { payload: { id, project_id }, project_id })
  await recordOrganization(tx, caller, organization, "deleted", { before })
}
