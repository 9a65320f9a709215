import { type Static, Type as t } from "@sinclair/typebox"
import { fail, invalid } from "../core/errors"
import { currentPeriod } from "../core/time"
import { countByProject } from "../domains/domains"
import { Deleted, deleted, MONTH, nameText, slugText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Call, consoleRow, route } from "../http/route"
import * as users from "../identity/users"
import { EXAMPLE_ID } from "../lib/record-fields"
import { defaultPlan, featuresOf, limitsOf, type PlanName } from "../plans/plans"
import { listInMemory } from "../store/rows"
import type { Store, Tx } from "../store/store"
import * as accounts from "./accounts"
import * as members from "./members"
import { breakdown, resourceCounts } from "./resources"
import {
  Account,
  AccountPlan,
  AccountSettings,
  JoinedAccount,
  ProjectBreakdown,
  ResourceCounts,
} from "./schemas"
import { usageOfAccount } from "./usage"

const NewAccount = t.Object({ name: nameText(), slug: t.Optional(slugText()) })

const AccountPatch = t.Partial(t.Object({ name: nameText(), settings: t.Partial(AccountSettings) }))
const Confirmation = t.Object({ confirm: t.String() })
const Heir = t.Object({ user_id: t.String() })

const accountQuery = pageQuery({})

const periodQuery = t.Object({
  period: t.Optional(
    t.String({
      pattern: MONTH,
      description: "The month as YYYY-MM, in UTC (default: this month).",
    }),
  ),
})

const ME = "/v1/accounts/me"

export function accountRoutes(parts: ListParts): AnyRoute[] {
  const { store } = parts
  const shown = async (row: accounts.AccountRow) => ({
    data: await accounts.toResponse(store.read, row),
  })
  return [
    ...listRoutes(parts),
    route({
      ...consoleRow("GET", ME, "role:member|usage:read"),
      callers: ["console", "key"],
      summary: "Show the account that you work in",
      description:
        "`X-Account-Id` names the account if you have several. `usage` is that of this month.",
      response: Account,
      handle: async ({ caller }) => shown(await accounts.find(store.read, caller.account_id)),
    }),
    route({
      ...consoleRow("PATCH", ME, "role:account_admin"),
      summary: "Change the name and the settings of the account",
      description:
        "Fields that are absent stay as they are. `require_mfa` refuses members without a second factor, so turn on your own one first.",
      body: AccountPatch,
      example: { name: "Acme", settings: { require_mfa: true } },
      response: Account,
      handle: async (call) => shown(await patch(store, call)),
    }),
    route({
      ...consoleRow("DELETE", ME, "role:owner"),
      summary: "Delete the account",
      description:
        "Needs the name of the account in `confirm`. Its keys and members are refused at once. Its data is deleted after 7 days. Until then, the owner can restore it.",
      body: Confirmation,
      example: { confirm: "Acme" },
      response: Deleted,
      handle: (call) => remove(store, call),
    }),
    route({
      ...consoleRow("POST", `${ME}/restore`, "role:owner"),
      of_deleted: "account",
      summary: "Restore a deleted account",
      description: "Works within 7 days of the deletion. API keys and members work again.",
      response: Account,
      errors: ["conflict", "plan_limit_exceeded"],
      handle: async ({ caller }) =>
        shown(await store.tx((tx) => accounts.restore(tx, caller.account_id, caller))),
    }),
    route({
      ...consoleRow("POST", `${ME}/transfer`, "role:owner"),
      summary: "Transfer the account to another member",
      description: "The other member becomes the owner, and you become an admin.",
      body: Heir,
      example: { user_id: EXAMPLE_ID },
      response: Account,
      errors: ["conflict", "plan_limit_exceeded", "user_not_found"],
      handle: async ({ caller, body }) => {
        const { account_id, user_id } = caller
        const heir = { from: user_id ?? "", to: body.user_id }
        return shown(await store.tx((tx) => members.transfer(tx, account_id, heir, caller)))
      },
    }),
    ...readRoutes(parts),
  ]
}

type Joined = Awaited<ReturnType<typeof accounts.accountsOf>>[number]
const BY_ID = {
  nameOf: ({ account }: Joined) => account.id,
  order: "falling" as const,
  missing: () => fail("not_found", "There is no such account."),
}

const listRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("POST", "/v1/accounts", "role:any", 201),
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
    ...consoleRow("GET", "/v1/accounts", "role:any"),
    summary: "List your accounts",
    description: "Lists every account that you belong to, each with your role.",
    query: accountQuery,
    response: JoinedAccount,
    handle: async (call) => {
      const user_id = call.caller.user_id ?? ""
      const mine = await accounts.accountsOf(store.read, user_id) // few: a person's, not a table's
      const shown = ({ account, role }: Joined) =>
        accounts.toResponse(store.read, account).then((record) => ({ ...record, role }))
      const { list, ...rows } = listInMemory(mine, BY_ID)
      return listPage(call, cursors, {
        ...rows,
        list: async (window) => ({ rows: await Promise.all((await list(window)).rows.map(shown)) }),
      })
    },
  }),
]

function create(store: Store, call: Call<Static<typeof NewAccount>>) {
  const { caller, body } = call
  const owner_user_id = caller.user_id ?? ""
  const wanted = { ...body, slug: body.slug, plan: defaultPlan(), owner_user_id }
  return answerOnce(store, call.claim, async (tx) => {
    await accounts.requireRoomForFree(tx, owner_user_id, wanted)
    return accounts.toResponse(tx, await accounts.create(tx, wanted, caller))
  })
}

/** A person that requires a second factor of all members needs one, too, or they lock themselves out. */
function patch(store: Store, { caller, body }: Call<accounts.AccountPatch>) {
  return store.tx(async (tx) => {
    if (body.settings?.require_mfa) await requireOwnMfa(tx, caller.user_id ?? "")
    return accounts.patch(tx, caller.account_id, body, caller)
  })
}

async function requireOwnMfa(tx: Tx, user_id: string) {
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

/** What an account pays for and what it uses. The role for billing is enough. */
const readRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", `${ME}/plan`, "role:billing"),
    summary: "Show the plan, its limits and its usage",
    description: "A null limit means unlimited. `usage` is that of the current month in UTC.",
    response: AccountPlan,
    handle: async ({ caller }) => {
      const account = await accounts.find(store.read, caller.account_id)
      const plan = account.plan as PlanName
      const usage = await usageOfAccount(store.read, account)
      return { data: { plan, limits: limitsOf(account), features: featuresOf(plan), usage } }
    },
  }),
  route({
    ...consoleRow("GET", `${ME}/project-breakdown`, "role:billing"),
    summary: "Show the usage and the resources of each project",
    description:
      "Shows every project of the account with its usage of one month. `resources` is what the project has now.",
    query: periodQuery,
    response: t.Array(ProjectBreakdown),
    handle: async ({ caller, query }) => {
      const period = query.period ?? currentPeriod()
      const { account_id } = caller
      const domains = await countByProject(store.read, account_id)
      return { data: await breakdown(store.read, account_id, period, domains) }
    },
  }),
  route({
    ...consoleRow("GET", `${ME}/resource-counts`, "role:billing"),
    summary: "Show the number of resources and their limits",
    description: "A null limit means unlimited.",
    response: ResourceCounts,
    handle: async ({ caller }) => {
      const account = await accounts.find(store.read, caller.account_id)
      const domains = await countByProject(store.read, account.id)
      return { data: await resourceCounts(store.read, account, domains) }
    },
  }),
]
