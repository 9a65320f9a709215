import { and, eq, inArray, isNull } from "drizzle-orm"
import { fail, invalid, Problems } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import { noun, type ProjectActor } from "../identity/noun"
import { enqueue, type JobKind } from "../jobs/jobs"
import { fieldsOf } from "../lib/record-fields"
import { slugFrom } from "../lib/text"
import { signerIn } from "../signing-keys/signing-keys"
import { bump, total, totals } from "../store/counters"
import type { RowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { insertKey, keysAmong } from "./application-keys"
import {
  Application,
  type ApplicationChanges,
  type ApplicationInput,
  type ApplicationRecord,
} from "./application-schemas"
import { hashOfSecret, newApplicationSecret } from "./credential-texts"
import { usersOf } from "./end-users"
import type { ApplicationRow } from "./environments"
import { insertOrganization } from "./organization-rows"
import { readOrigins, readRedirects } from "./redirects"
import { applications, ENVIRONMENT_NAMES, environments } from "./tables"

/** Of a project. */
const MOST_APPLICATIONS = 100

const DEFAULTS = {
  type: "web" as const,
  session_duration_minutes: 60,
  refresh_token_duration_days: 30,
}

/** Throws 404 `not_found`. */
export const noApplication = (): never => fail("not_found", "There is no such application.")

const application = noun({
  name: "application",
  table: applications,
  missing: noApplication,
  unique: {
    column: "slug",
    message: (slug) =>
      `Another application of this project has the slug ${slug}. Choose another slug.`,
  },
  counter: "applications",
  most: MOST_APPLICATIONS,
})

/** Throws 404 `not_found`, also while the application is being deleted. */
export const find = async (db: Reader, project_id: string, id: string): Promise<ApplicationRow> =>
  alive(await application.find(db, project_id, id))

/** As `find`, with the row locked until the transaction ends. */
export const forUpdate = async (tx: Tx, project_id: string, id: string): Promise<ApplicationRow> =>
  alive(await application.forUpdate(tx, project_id, id))

const alive = (row: ApplicationRow): ApplicationRow => (row.deleting_at ? noApplication() : row)

/** Newest first; with `only` that one alone. */
export function list(db: Reader, project_id: string, only?: string): RowList<ApplicationRecord> {
  const wanted = and(
    isNull(applications.deleting_at),
    only === undefined ? undefined : eq(applications.id, only),
  )
  const rows = application.list(db, project_id, { filter: wanted })
  return {
    ...rows,
    ...(only === undefined && { total: () => total(db, project_id, "applications") }),
    async list(window) {
      const found = await rows.list(window)
      return { ...found, rows: await shownAll(db, found.rows) }
    },
  }
}

/**
 * A new application with both environments, their Default organizations, and a public key for each. The secret
 * leaves here, once. Throws 409 `conflict` when the slug is taken, 422 `invalid_url`.
 */
export async function create(
  tx: Tx,
  secrets: Secrets,
  by: ProjectActor,
  input: ApplicationInput,
): Promise<ApplicationRecord & { secret_key: string }> {
  const slug = input.slug ?? (await freeSlug(tx, by.project_id, input.name))
  const secret_key = newApplicationSecret()
  const wanted = { ...DEFAULTS, allowed_origins: [], redirect_urls: [], ...input, slug }
  requireAddresses(wanted)
  const row = await application.insert(tx, by, {
    ...wanted,
    logo_url: null,
    secret_hash: hashOfSecret(secret_key),
    ...{ previous_secret_hash: null, previous_expires_at: null, deleting_at: null },
  })
  for (const name of ENVIRONMENT_NAMES) await addEnvironment(tx, by, row, name)
  await signerIn(tx, secrets, { project_id: row.project_id, application_id: row.id })
  return { ...(await shown(tx, row)), secret_key }
}

async function freeSlug(tx: Tx, project_id: string, name: string): Promise<string> {
  const wish = slugFrom(name) || "application"
  const same = and(eq(applications.project_id, project_id), eq(applications.slug, wish))
  const [taken] = await tx.select().from(applications).where(same)
  return taken ? `${wish}-${newId().slice(-8)}` : wish
}

/** Throws 422 `invalid_url`. */
function requireAddresses({
  type,
  allowed_origins,
  redirect_urls,
}: Pick<ApplicationRow, "type" | "allowed_origins" | "redirect_urls">) {
  const problems = new Problems()
  readOrigins(allowed_origins, "allowed_origins", problems, type)
  readRedirects(redirect_urls, "redirect_urls", problems, type)
  problems.throwIfAny()
}

async function addEnvironment(
  tx: Tx,
  by: ProjectActor,
  { id: application_id, project_id }: ApplicationRow,
  name: (typeof ENVIRONMENT_NAMES)[number],
) {
  const at = { created_at: now(), updated_at: now() }
  const [environment_id, organization_id] = [newId(), newId()]
  const own = { project_id, application_id, ...at }
  await tx.insert(environments).values({
    ...{ id: environment_id, name, settings: {} },
    ...own,
    default_organization_id: organization_id,
    allowed_email_domains: [],
  })
  await insertOrganization(tx, {
    ...{ id: organization_id, environment_id, name: "Default", slug: "default", ...own },
    ...{ mfa_required: false, allowed_email_domains: [], metadata: {} },
  })
  await insertKey(tx, by, { application_id, environment: name, name: "Default" })
}

/** What is absent stays. Throws as `create`. */
export async function change(
  tx: Tx,
  by: ProjectActor,
  id: string,
  changes: ApplicationChanges,
): Promise<ApplicationRecord> {
  const before = await forUpdate(tx, by.project_id, id)
  requireAddresses({ ...before, ...changes })
  return shown(tx, await application.update(tx, by, before, changes))
}

/** A new secret; the one before it works for the overlap. Throws 404. */
export async function rotateSecret(tx: Tx, by: ProjectActor, id: string, overlap_hours: number) {
  const before = await forUpdate(tx, by.project_id, id)
  const secret_key = newApplicationSecret()
  const previous_expires_at = secondsFromNow(overlap_hours * 3600)
  const changes = {
    secret_hash: hashOfSecret(secret_key),
    previous_secret_hash: before.secret_hash,
    previous_expires_at,
  }
  await application.update(tx, by, before, changes, "secret_rotated")
  return { secret_key, previous_expires_at }
}

/** The users, organizations, keys and sessions of an application that was deleted. */
export const applicationDeleted: JobKind<{ id: string }> = {
  name: "application.deleted",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

/** Nothing answers for it from now on, and its slug is free. Throws 422 where `confirm` is not the slug. */
export async function remove(tx: Tx, by: ProjectActor, id: string, confirm: string) {
  const before = await forUpdate(tx, by.project_id, id)
  if (confirm !== before.slug)
    throw invalid("confirm", "invalid", "The value must be the slug of the application.")
  const changes = { deleting_at: now(), slug: `~${before.id}` }
  await application.update(tx, by, before, changes, "deleted")
  await bump(tx, by.project_id, "applications", -1)
  await enqueue(tx, applicationDeleted, { payload: { id: before.id }, project_id: by.project_id })
}

/** The record of the contract. */
export const shown = async (db: Reader, row: ApplicationRow): Promise<ApplicationRecord> =>
  (await shownAll(db, [row]))[0] as ApplicationRecord

async function shownAll(db: Reader, rows: ApplicationRow[]): Promise<ApplicationRecord[]> {
  const [first] = rows
  if (!first) return []
  const ids = rows.map(({ id }) => id)
  const keys = await keysAmong(db, first.project_id, ids)
  const mine = eq(environments.project_id, first.project_id)
  const own = await db
    .select()
    .from(environments)
    .where(and(mine, inArray(environments.application_id, ids)))
  const counted = own.map(({ id }) => usersOf(id))
  const users = await totals(db, first.project_id, counted)
  return rows.map((row) => {
    const keyOf = (name: string | null) =>
      keys.find((key) => key.application_id === row.id && key.environment === name)?.key ?? null
    const environmentsOf = ENVIRONMENT_NAMES.map((name) => {
      const found = own.find((one) => one.application_id === row.id && one.name === name)
      const counted = found ? users.get(usersOf(found.id)) : 0
      return { name, status: "active" as const, users: counted ?? 0 }
    })
    return fieldsOf(Application, {
      ...row,
      public_key: keyOf("live"),
      public_keys: { live: keyOf("live"), test: keyOf("test") },
      legacy_public_key: keyOf(null),
      environments: environmentsOf,
    })
  })
}
