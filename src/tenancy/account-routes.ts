import { type Static, Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { Deleted, deleted, nameText, slugText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { asPage, type Cursors, keyById, pageQuery, windowOf } from "../http/page"
import { invalid } from "../http/problems"
import type { Call } from "../http/route"
import { type AnyRoute, route } from "../http/route"
import * as users from "../identity/users"
import { EXAMPLE_ID } from "../lib/record-fields"
import { defaultPlan } from "../plans/plans"
import type { Store, Tx } from "../store/store"
import { cutOut } from "../store/stretch"
import { accountReadRoutes } from "./account-read-routes"
import { usageOfAccount } from "./account-usage"
import * as accounts from "./accounts"
import { demandRoomForFree } from "./free"
import * as members from "./members"
import { accountRecord } from "./record"
import { Account, AccountSettings, JoinedAccount } from "./schemas"

const NewAccount = t.Object({ name: nameText(), slug: t.Optional(slugText()) })

const AccountPatch = t.Partial(t.Object({ name: nameText(), settings: t.Partial(AccountSettings) }))
const Confirmation = t.Object({ confirm: t.String() })
const Heir = t.Object({ user_id: t.String() })

const accountQuery = pageQuery({})

export interface AccountParts {
  store: Store
  cursors: Cursors
}

const ME = "/v1/accounts/me"

export function accountRoutes(parts: AccountParts): AnyRoute[] {
  const { store } = parts
  const shown = async (row: accounts.AccountRow) => ({
    data: accountRecord(row, await usageOfAccount(store.read, row)),
  })
  return [
    ...listRoutes(parts),
    route({
      ...by("role:member|usage:read", "GET", ME),
      callers: ["console", "key"],
      summary: "Show the account that you work in",
      description:
        "`X-Account-Id` names the account if you have several. `usage` counts this month.",
      response: Account,
      handle: async ({ caller }) => shown(await accounts.find(store.read, caller.account_id)),
    }),
    route({
      ...by("role:account_admin", "PATCH", ME),
      summary: "Change the name and the settings of the account",
      description:
        "Fields that are absent stay as they are. `require_mfa` refuses members without a second factor, so turn on your own one first.",
      body: AccountPatch,
      example: { name: "Acme", settings: { require_mfa: true } },
      response: Account,
      handle: async (call) => shown(await patch(store, call)),
    }),
    route({
      ...by("role:owner", "DELETE", ME),
      summary: "Delete the account",
      description:
        "Needs the name of the account in `confirm`. Its keys and members are refused at once. Its data is deleted after 7 days. Until then, the owner can restore it.",
      body: Confirmation,
      example: { confirm: "Acme" },
      response: Deleted,
      handle: (call) => remove(store, call),
    }),
    route({
      ...by("role:owner", "POST", `${ME}/restore`),
      of_deleted: "account",
      summary: "Restore a deleted account",
      description: "Works within 7 days of the deletion. API keys and members work again.",
      response: Account,
      errors: ["conflict", "plan_limit_exceeded"],
      handle: async (call) => shown(await restore(store, call)),
    }),
    route({
      ...by("role:owner", "POST", `${ME}/transfer`),
      summary: "Transfer the account to another member",
      description: "The other member becomes the owner, and you become an admin.",
      body: Heir,
      example: { user_id: EXAMPLE_ID },
      response: Account,
      errors: ["conflict", "plan_limit_exceeded", "user_not_found"],
      handle: async ({ caller, body }) => {
        const { account_id, user_id } = caller
        const { user_id: heir } = body
        return shown(
          await store.tx((tx) => members.transfer(tx, account_id, user_id ?? "", heir, caller)),
        )
      },
    }),
    ...accountReadRoutes(parts),
  ]
}

const by = <const Path extends string>(scope: string, method: AnyRoute["method"], path: Path) => ({
  method,
  path,
  scope,
  callers: ["console"] as AnyRoute["callers"],
  status: [200] as [number],
})

const listRoutes = ({ store, cursors }: AccountParts): AnyRoute[] => [
  route({
    ...by("role:any", "POST", "/v1/accounts"),
    status: [201],
    summary: "Make an account",
    description:
      "You become the owner of the account. It gets the default plan of this server. A person can own two free accounts.",
    body: NewAccount,
    example: { name: "Acme", slug: "acme" },
    response: Account,
    errors: ["plan_limit_exceeded"],
    idempotent: true,
    handle: (call) => create(store, call),
  }),
  route({
    ...by("role:any", "GET", "/v1/accounts"),
    summary: "List your accounts",
    description: "Lists every account that you belong to, each with your role.",
    query: accountQuery,
    response: JoinedAccount,
    handle: async (call) => {
      const user_id = call.caller.user_id ?? ""
      const mine = await members.accountsOf(store.read, user_id) // few: a person's, not a table's
      const byId = keyById(
        async (id) =>
          mine.find(({ account }) => account.id === id) ??
          fail("not_found", "There is no such account."),
      )
      const window = await windowOf(call, cursors, byId)
      const some = cutOut(mine, { nameOf: ({ account }) => account.id, order: "falling" }, window)
      const rows = some.map(async ({ account, role }) => {
        const usage = await usageOfAccount(store.read, account)
        return { ...accountRecord(account, usage), role }
      })
      const page = { rows: await Promise.all(rows), total: async () => mine.length }
      return asPage(call, cursors, page)
    },
  }),
]

async function create(store: Store, { caller, body, claim }: Call<Static<typeof NewAccount>>) {
  const owner_user_id = caller.user_id ?? ""
  const wanted = { ...body, slug: body.slug, plan: defaultPlan(), owner_user_id }
  return answerOnce(store, claim, async (tx) => {
    await demandRoomForFree(tx, owner_user_id, wanted)
    const row = await accounts.create(tx, wanted, caller)
    return accountRecord(row, await usageOfAccount(tx, row))
  })
}

/** A person that requires a second factor of all members needs one, too, or they lock themselves out. */
function patch(store: Store, { caller, body }: Call<accounts.AccountPatch>) {
  return store.tx(async (tx) => {
    if (body.settings?.require_mfa) await demandOwnMfa(tx, caller.user_id ?? "")
    return accounts.patch(tx, caller.account_id, body, caller)
  })
}

async function demandOwnMfa(tx: Tx, user_id: string) {
  const { mfa_secret } = await users.find(tx, user_id)
  if (mfa_secret === null)
    fail(
      "mfa_required",
      "You have no second factor. Turn on your own before you require it of others.",
    )
}

async function remove(store: Store, { caller, body }: Call<{ confirm: string }>) {
  const { account_id } = caller
  const { name } = await accounts.find(store.read, account_id)
  if (body.confirm !== name) {
    throw invalid("confirm", "invalid", "The value must be the name of the account.")
  }
  await store.tx((tx) => accounts.remove(tx, account_id, caller))
  return deleted(account_id)
}

/** A free account comes back only where its owner has room for it. */
function restore(store: Store, { caller }: Call) {
  return store.tx(async (tx) => {
    const { account_id } = caller
    const account = await accounts.find(tx, account_id)
    const { owner_user_id } = account
    if (account.deleting_at && owner_user_id) await demandRoomForFree(tx, owner_user_id, account)
    return accounts.restore(tx, account_id, caller)
  })
}
