import { and, eq, isNull } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { type AllowedOrigins, type Caller, confinedTo } from "../identity/caller"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { ENVIRONMENT_DEFAULTS, type EnvironmentSettings } from "./environment-settings"
import { applications, type EnvironmentName, environments } from "./tables"

export type ApplicationRow = typeof applications.$inferSelect

/** An application in one of its environments, with the settings that hold there. */
export interface AuthEnvironment {
  id: string
  name: EnvironmentName
  project_id: string
  application: ApplicationRow
  default_organization_id: string
  /** Of the Default organization. Empty lets in every address. */
  allowed_email_domains: string[]
  settings: EnvironmentSettings
  /** Sealed; null where it asks for no captcha. */
  captcha_secret: string | null
}

/** Which application and environment a request is for, where its credential does not say so. */
export interface AskedEnvironment {
  application_id?: string | undefined
  environment?: string | undefined
}

/**
 * The environment that a request is for (contract 50, section 1): its credential decides, else what the request says,
 * else `live` of the project's only application. Throws 404 for an application of another project, 422
 * where there are several to choose from.
 */
export async function environmentOf(
  db: Reader,
  { caller, request }: { caller: Caller; request: Request },
  asked: AskedEnvironment = {},
): Promise<AuthEnvironment> {
  const { project_id, application } = caller
  const confined = confinedTo(caller)
  if (confined && asked.application_id && asked.application_id !== confined) return noEnvironment()
  const id = application?.id ?? asked.application_id ?? (await onlyApplication(db, project_id))
  const name =
    application?.environment ?? asked.environment ?? request.headers.get("x-environment") ?? "live"
  return findEnvironment(db, project_id, id, name)
}

/** Throws 404 `not_found`. */
export async function findEnvironment(
  db: Reader,
  project_id: string,
  application_id: string,
  name: string,
): Promise<AuthEnvironment> {
  const found = await environmentNamed(db, application_id, name)
  return found?.project_id === project_id ? found : noEnvironment()
}

/** Throws 404 `not_found`. */
export const noEnvironment = () => fail("not_found", "There is no such application or environment.")

const byName = cached<AuthEnvironment | undefined>({
  tables: ["applications", "auth_environments"],
})

/** Of any project: the caller proves that it may ask. */
export async function environmentNamed(
  db: Reader,
  application_id: string,
  name: string,
): Promise<AuthEnvironment | undefined> {
  if (!isUuid(application_id)) return undefined
  const key = `${application_id} ${name}`
  return await byName(db, key, async () => {
    const [row] = await findByName(db, { application_id, name: name as EnvironmentName })
    return row && shaped(row)
  })
}

const byId = cached<AuthEnvironment | undefined>({ tables: ["applications", "auth_environments"] })

/** By its own id, also of any project. */
export async function environmentById(
  db: Reader,
  id: string,
): Promise<AuthEnvironment | undefined> {
  return await byId(db, id, async () => {
    const [row] = await findById(db, { id })
    return row && shaped(row)
  })
}

const shaped = ({ environment, application }: EnvironmentRow): AuthEnvironment => {
  const { id, name, project_id, default_organization_id, captcha_secret, settings } = environment
  const { allowed_email_domains } = environment
  const { methods, session, password_policy, mfa } = ENVIRONMENT_DEFAULTS
  return {
    ...{ id, name, project_id, application, default_organization_id, captcha_secret },
    allowed_email_domains,
    settings: {
      ...ENVIRONMENT_DEFAULTS,
      ...settings,
      methods: { ...methods, ...settings.methods },
      session: { ...session, ...settings.session },
      password_policy: { ...password_policy, ...settings.password_policy },
      mfa: { ...mfa, ...settings.mfa },
    },
  }
}

/** Whether the credential of a caller of this project reaches the environment. */
export const isWithin = ({ application }: Caller, environment: AuthEnvironment): boolean =>
  application === null ||
  (application.id === environment.application.id &&
    (application.environment ?? environment.name) === environment.name)

/** The pages that may speak for users: none listed is every one in `test`, and none in `live`. */
export function originsOf({ name, application, settings }: AuthEnvironment): AllowedOrigins {
  const listed = settings.allowed_origins ?? application.allowed_origins
  return listed.length === 0 && name === "test" ? "any" : listed
}

/** The redirects that are allowed, as they are compared: exactly. */
export const redirectsOf = ({ application, settings }: AuthEnvironment): string[] =>
  settings.redirect_urls ?? application.redirect_urls

/** The only application of the project. Throws 422 where there are several, 404 where there is none. */
async function onlyApplication(db: Reader, project_id: string): Promise<string> {
  const mine = and(eq(applications.project_id, project_id), isNull(applications.deleting_at))
  const [first, second] = await db
    .select({ id: applications.id })
    .from(applications)
    .where(mine)
    .limit(2)
  if (!first) return fail("not_found", "This project has no application.")
  if (!second) return first.id
  throw new ApiError(
    "missing_required_field",
    "This project has several applications. Name one of them in application_id.",
    { field: "application_id", reason: "The project has several applications." },
  )
}

interface EnvironmentRow {
  environment: typeof environments.$inferSelect
  application: ApplicationRow
}

const environmentsWithOwner = (db: Reader) =>
  db
    .select({ environment: environments, application: applications })
    .from(environments)
    .innerJoin(applications, eq(applications.id, environments.application_id))

const findByName = prepared(
  { application_id: environments.application_id, name: environments.name },
  (db: Reader, slot) =>
    environmentsWithOwner(db).where(
      and(
        eq(environments.application_id, slot.application_id),
        eq(environments.name, slot.name),
        isNull(applications.deleting_at),
      ),
    ),
)

const findById = prepared({ id: environments.id }, (db: Reader, slot) =>
  environmentsWithOwner(db).where(
    and(eq(environments.id, slot.id), isNull(applications.deleting_at)),
  ),
)
