import { and, desc, eq, inArray, isNull } from "drizzle-orm"
import { conflict, fail, invalid, tooMany } from "../core/errors"
import { noun, type ProjectActor } from "../identity/noun"
import { fieldsOf } from "../lib/record-fields"
import { countRows } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { ApplicationKey } from "./application-schemas"
import { newPublicKey } from "./credential-texts"
import { applicationKeys, type EnvironmentName } from "./tables"

type KeyRow = typeof applicationKeys.$inferSelect

/** Of an application. */
const MOST_KEYS = 20

const applicationKey = noun({
  name: "application_key",
  table: applicationKeys,
  missing: () => fail("not_found", "There is no such key of an application."),
})

interface WantedKey {
  application_id: string
  /** Null for the legacy key. */
  environment: EnvironmentName | null
  name: string
}

/** Without the checks of `addKey`. */
export const insertKey = (tx: Tx, by: ProjectActor, wanted: WantedKey): Promise<KeyRow> =>
  applicationKey.insert(tx, by, {
    ...wanted,
    key: newPublicKey(wanted.environment),
    last_used_at: null,
  })

/** Of a locked application. Throws 409 `conflict` for a second legacy key, and at the limit. */
export async function addKey(
  tx: Tx,
  by: ProjectActor,
  application_id: string,
  { name, environment, legacy }: { name: string; environment?: EnvironmentName; legacy?: boolean },
) {
  if ((environment !== undefined) === (legacy === true)) {
    const text = "Give either environment, or legacy: true for a key without one."
    throw invalid("environment", environment ? "invalid" : "required", text)
  }
  const known = await of(tx, by.project_id, application_id)
  const old = legacy && known.find((key) => key.environment === null)
  if (old) conflict("legacy_key_exists", old.id, "This application has a legacy key already.")
  if (known.length >= MOST_KEYS)
    tooMany(`An application has at most ${MOST_KEYS} keys. Delete one first.`, MOST_KEYS)
  return insertKey(tx, by, { application_id, environment: environment ?? null, name })
}

/** Refused from the next request on. Throws 409 `conflict` for the last key of an environment, unless `force`. */
export async function removeKey(
  tx: Tx,
  by: ProjectActor,
  { application_id, id, force }: { application_id: string; id: string; force: boolean },
) {
  const row = await applicationKey.forUpdate(tx, by.project_id, id)
  if (row.application_id !== application_id)
    fail("not_found", "There is no such key of an application.")
  if (!force && row.environment !== null && (await isLast(tx, row))) {
    const text = `This is the last key of ${row.environment}. Make another one first, or set force=true.`
    conflict("last_key", id, text)
  }
  await applicationKey.remove(tx, by, row)
}

const isLast = async (tx: Tx, { project_id, application_id, environment }: KeyRow) =>
  (await countRows(
    tx,
    applicationKeys,
    and(
      ofApplications(project_id, [application_id]),
      environment
        ? eq(applicationKeys.environment, environment)
        : isNull(applicationKeys.environment),
    ),
  )) <= 1

/** Newest first. */
export const of = (db: Reader, project_id: string, application_id: string): Promise<KeyRow[]> =>
  keysAmong(db, project_id, [application_id])

/** The keys of several applications, newest first. */
export const keysAmong = async (
  db: Reader,
  project_id: string,
  application_ids: string[],
): Promise<KeyRow[]> =>
  await db
    .select()
    .from(applicationKeys)
    .where(ofApplications(project_id, application_ids))
    .orderBy(desc(applicationKeys.id))

const ofApplications = (project_id: string, ids: string[]) =>
  and(eq(applicationKeys.project_id, project_id), inArray(applicationKeys.application_id, ids))

/** The record of the contract. */
export const toResponse = (row: KeyRow) => fieldsOf(ApplicationKey, { ...row, status: "active" })
