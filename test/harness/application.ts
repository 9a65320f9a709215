import { eq } from "drizzle-orm"
import { hashOfSecret, newApplicationSecret, newPublicKey } from "../../src/auth/credential-texts"
import type { NewEndUser } from "../../src/auth/end-users"
import type { EnvironmentSettings } from "../../src/auth/environment-settings"
import { type AuthEnvironment, environmentById } from "../../src/auth/environments"
import { insertOrganization } from "../../src/auth/organization-rows"
import { createUser, startSignedIn } from "../../src/auth/sign-in"
import {
  applicationKeys,
  applications,
  type EnvironmentName,
  environments,
  type SessionActor,
  userSessions,
} from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { bump } from "../../src/store/counters"
import { callingWith } from "./client"
import { signedIn } from "./people"
import type { TestService } from "./service"

interface Home {
  account_id: string
  project_id: string
}

type ApplicationColumns = Partial<
  Pick<
    typeof applications.$inferInsert,
    | "name"
    | "allowed_origins"
    | "redirect_urls"
    | "session_duration_minutes"
    | "refresh_token_duration_days"
  >
>

interface ApplicationOptions extends ApplicationColumns {
  /** Of both environments. */
  settings?: Partial<EnvironmentSettings>
}

type InProcess = Pick<TestService, "store" | "app">

/** An application of the project with both environments, past every rule of how they are made. */
export async function newApplication(
  { store, app }: InProcess,
  { account_id, project_id }: Home,
  { settings = {}, ...columns }: ApplicationOptions = {},
) {
  const id = newId()
  const secret = newApplicationSecret()
  const ids = { live: newId(), test: newId() }
  const keys = {
    live: newPublicKey("live"),
    test: newPublicKey("test"),
    legacy: newPublicKey(null),
  }
  const at = { created_at: now(), updated_at: now() }
  const row: typeof applications.$inferInsert = {
    ...{ id, account_id, project_id, name: "Shop", slug: id, type: "web", logo_url: null },
    ...{ session_duration_minutes: 60, refresh_token_duration_days: 30 },
    ...{ allowed_origins: [], redirect_urls: [], secret_hash: hashOfSecret(secret) },
    ...columns,
    ...at,
  }
  await store.tx(async (tx) => {
    await tx.insert(applications).values(row)
    await bump(tx, project_id, "applications", 1)
    for (const name of ["live", "test"] as const) {
      const own = { project_id, application_id: id }
      const organization = { id: newId(), environment_id: ids[name] }
      const default_organization_id = organization.id
      const { passkey_rp_id = null } = settings
      const environment = { id: ids[name], name, settings, passkey_rp_id, default_organization_id }
      await tx.insert(environments).values({ ...own, ...environment, ...at })
      const names = { name: "Default", slug: "default", metadata: {} }
      const rules = { mfa_required: false, allowed_email_domains: [] }
      await insertOrganization(tx, { ...own, ...organization, ...names, ...rules, ...at })
    }
    for (const name of ["live", "test", "legacy"] as const) {
      const environment = name === "legacy" ? null : name
      const key = { id: newId(), project_id, application_id: id, key: keys[name] }
      await tx
        .insert(applicationKeys)
        .values({ ...key, environment, name: "Default", created_at: now() })
    }
  })
  return {
    id,
    project_id,
    account_id,
    secret,
    keys,
    environment_ids: ids,
    /** Calls with a public key. */
    app: (kind: keyof typeof keys = "live") =>
      callingWith(app, { "x-application-key": keys[kind] }),
    /** Calls with the secret. */
    server: () => callingWith(app, { "x-application-secret": secret }),
    environment: (name: EnvironmentName = "live"): Promise<AuthEnvironment> =>
      environmentById(store.read, ids[name]).then((found) => {
        if (!found) throw new Error("the application of the test is gone")
        return found
      }),
  }
}

interface SignUpOptions extends NewEndUser {
  environment?: EnvironmentName
  /** Somebody of the project acts as the user. */
  act?: SessionActor
}

/** A user with a session, past every way in, and a client that calls as them. */
export async function signedUp(
  { store, app, parts }: Pick<TestService, "store" | "app" | "parts">,
  application: Pick<TestApplication, "environment">,
  { environment: name, act, ...wanted }: SignUpOptions = {},
) {
  const environment = await application.environment(name)
  const email = `${newId()}@users.test`
  const client = { ip: "127.0.0.1", user_agent: null }
  const signed = await store.tx(async (tx) => {
    const user = await createUser(tx, environment, { email, ...wanted })
    if (!user) throw new Error("the test has signed this user up before")
    const proven = { environment, user, client, provider: "password" as const, amr: ["pwd"] }
    const result = await startSignedIn(tx, parts.auth, { ...proven, is_new: true })
    if (act) await tx.update(userSessions).set({ act }).where(eq(userSessions.user_id, user.id))
    return result
  })
  const { access_token = "", refresh_token = "" } = signed.tokens ?? {}
  return {
    id: signed.user.id,
    email: signed.user.email,
    session_id: signed.session?.id ?? "",
    access_token,
    refresh_token,
    ...signedIn(app, access_token),
  }
}

export type TestUser = Awaited<ReturnType<typeof signedUp>>

export type TestApplication = Awaited<ReturnType<typeof newApplication>>
