import * as apiKeys from "../identity/api-keys"
import type { Client, Sessions } from "../identity/sessions"
import { asUser } from "../identity/user-log"
import * as users from "../identity/users"
import { defaultPlan, limitsOf } from "../plans/plans"
import type { Reader, Tx } from "../store/store"
import { usageOfAccount } from "./account-usage"
import * as accounts from "./accounts"
import { ownerless } from "./first"
import * as projects from "./projects"
import { accountRecord } from "./record"

export interface FirstOwner {
  email: string
  name: string | null
  password_hash: string
  account_name: string
  project_name: string
}

/**
 * The first owner, who also runs the instance, with an account, a project and a key. What `init`
 * or `up` began is adopted, its key included; otherwise everything is made. The caller has made
 * sure that there is no owner yet.
 */
export async function establish(tx: Tx, sessions: Sessions, owner: FirstOwner, client: Client) {
  const { email, name, password_hash } = owner
  const user = await users.create(tx, { email, name, password_hash, operator: true })
  const home = (await adopted(tx, user, owner, client)) ?? (await founded(tx, user, owner, client))
  const ids = { account_id: home.account.id, project_id: home.project.id }
  const api_key = await apiKeys.create(
    tx,
    { ...ids, created_by: { type: "user", id: user.id } },
    { name: "first", scopes: ["*"], expires_at: null, ip_addresses: [] },
    asUser(user, client.ip),
  )
  return {
    session: await sessions.start(tx, user, client),
    account: home.account,
    project: home.project,
    api_key,
  }
}

export type Established = Awaited<ReturnType<typeof establish>>

/** What setup answers. */
export async function setupRecord(db: Reader, { account, project, ...rest }: Established) {
  return {
    ...rest,
    account: accountRecord(account, await usageOfAccount(db, account)),
    project: projects.projectRecord(project),
  }
}

async function adopted(tx: Tx, user: users.UserRow, owner: FirstOwner, { ip }: Client) {
  const home = await ownerless(tx)
  if (!home) return undefined
  const by = asUser(user, ip)
  await accounts.adopt(tx, home.account_id, user.id, by)
  const account = await accounts.patch(tx, home.account_id, { name: owner.account_name }, by)
  const named = { name: owner.project_name }
  const project = await projects.patch(tx, home.account_id, home.project_id, named, by)
  return { account, project }
}

async function founded(tx: Tx, user: users.UserRow, owner: FirstOwner, { ip }: Client) {
  const by = asUser(user, ip)
  const plan = defaultPlan()
  const { account_name, project_name } = owner
  const wanted = { name: account_name, plan, owner_user_id: user.id }
  const account = await accounts.create(tx, wanted, by)
  const limit = limitsOf(account).projects
  const of = { account_id: account.id, name: project_name, limit, plan }
  return { account, project: await projects.create(tx, of, by) }
}
