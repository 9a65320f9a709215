import { eq } from "drizzle-orm"
import type { Elysia } from "elysia"
import { LOCAL } from "../../src/audit-log/audit-log"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { type AccountRole, consoleUsers } from "../../src/identity/tables"
import * as accounts from "../../src/tenancy/accounts"
import { seat } from "../../src/tenancy/accounts"
import * as projects from "../../src/tenancy/projects"
import { callingWith } from "./client"
import type { TestService } from "./service"

/** Nobody signs in with it: what is tested here begins behind the password. */
const NO_PASSWORD =
  "$argon2id$v=19$m=19456,t=2,p=1$BM7BapwVvx57fUfL6DwbEEx+q+h37/MlSqPnCh315HM$MGDT/FS+b32vbz25dX4iVFS9ZepZ++PQm5oXVw42xxM"

/** A console user with a session, and a client that calls as him. */
export async function person(
  service: TestService,
  email = `${newId()}@people.test`,
  operator = false,
) {
  const { store, parts, app } = service
  const user: typeof consoleUsers.$inferSelect = {
    id: newId(),
    email,
    email_key: email,
    name: "Pat",
    locale: "en",
    timezone: "UTC",
    password_hash: NO_PASSWORD,
    operator,
    status: "active",
    mfa_secret: null,
    mfa_pending: null,
    mfa_pending_at: null,
    mfa_last_step: null,
    created_at: now(),
    updated_at: now(),
    last_login_at: null,
  }
  const origin = { ip: "127.0.0.1", user_agent: null, client_name: null }
  const session = await store.tx(async (tx) => {
    await tx.insert(consoleUsers).values(user)
    return parts.sessions.start(tx, user, origin)
  })
  const { access_token: token } = session
  return { id: user.id, email, token, ...signedIn(app, token) }
}

/** Calls with an access token; headers given with a call are added. */
export const signedIn = (app: Elysia, access_token: string) =>
  callingWith(app, { authorization: `Bearer ${access_token}` })

export type Person = Awaited<ReturnType<typeof person>>

/** An account with one project, its owner, and whoever else is asked for. */
export async function team(service: TestService, plan = "enterprise") {
  const owner = await person(service)
  const made = await service.store.tx(async (tx) => {
    const wanted = { name: "Team", plan, owner_user_id: owner.id }
    const account = await accounts.create(tx, wanted, LOCAL)
    const home = { account_id: account.id, name: "Default", limit: null, plan }
    return { account, project: await projects.create(tx, home, LOCAL) }
  })
  return {
    owner,
    account_id: made.account.id,
    project_id: made.project.id,
    /** Another member, with that role. */
    async join(role: AccountRole) {
      const newcomer = await person(service)
      await service.store.tx((tx) => seat(tx, made.account.id, newcomer.id, role))
      return newcomer
    },
  }
}

export type Team = Awaited<ReturnType<typeof team>>

/** Whatever a sign-up with a second factor would have left. */
export const giveMfa = (service: TestService, { id }: Person) =>
  service.store.tx((tx) =>
    tx.update(consoleUsers).set({ mfa_secret: "sealed" }).where(eq(consoleUsers.id, id)),
  )
