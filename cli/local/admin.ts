import type { AdminOrder } from "../../src/operations/admin"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { optionWords } from "../lib/flags"
import { ask, password } from "../lib/prompts"
import { type Columns, fields, wide } from "../lib/table"
import { runOrder } from "./admin-socket"
import type { LocalOptions } from "./settings"

type Json = Record<string, unknown>

interface BootstrapOptions extends LocalOptions {
  email?: string
  passwordStdin?: boolean
  name?: string
  accountName?: string
  projectName?: string
}

type FirstOwner = {
  user: { id: string; email: string }
  account: { id: string; name: string }
  project: { id: string; name: string }
  api_key: { id: string; key: string }
}

/** Setup without its token: a user that can read the data folder needs none. */
export const bootstrap: Action<BootstrapOptions> = async (context, options) => {
  const email = options.email ?? (await ask(context, "Email", "give it with --email"))
  const { passwordStdin, accountName = "Main", projectName = "Default", name = null } = options
  context.output.promises(["user", "account", "project", "api_key"])
  const created = await runOrder<FirstOwner>(context, options, {
    operation: "bootstrap",
    email,
    password: await password(context, { passwordStdin, is_new: true }),
    name,
    account_name: accountName,
    project_name: projectName,
  })
  const { output, paint } = context
  const human = () => {
    const lines = [
      ["owner", created.user.email],
      ["account", `${created.account.name} ${created.account.id}`],
      ["project", `${created.project.name} ${created.project.id}`],
      ["API key", created.api_key.key],
    ] as const
    return `${paint.green("✓")} set up; the key cannot be shown again:\n${fields(lines, paint)}`
  }
  await output.record(created, human, created.api_key.key) // with --quiet too: it cannot be had again
  await output.next(`belfry login${optionWords({ email })}`)
}

interface ResetOptions extends LocalOptions {
  passwordStdin?: boolean
  keepMfa?: boolean
}

export const resetOwner: Action<ResetOptions> = async (context, options, email = "") => {
  context.output.promises(fieldsOf("PATCH /v1/users/me"))
  const { passwordStdin, keepMfa = false } = options
  const secret = await password(context, { passwordStdin, is_new: true })
  const what = { operation: "reset_owner", email, password: secret, keep_mfa: keepMfa } as const
  const user = await runOrder<Json>(context, options, what)
  const text = `${context.paint.green("✓")} ${email} has a new password; all their sessions have ended`
  await context.output.record(user, () => text)
}

type Account = { id: string; name: string; slug: string; plan: string; status: string }

interface StatusOptions extends LocalOptions {
  reason?: string
}

const setStatus =
  (status: "active" | "locked" | "suspended"): Action<StatusOptions> =>
  async (context, options, account = "") => {
    context.output.promises([...fieldsOf("POST /v1/accounts"), "status_reason", "deleting_at"])
    const what = {
      operation: "set_status",
      account,
      status,
      reason: options.reason ?? null,
    } as const
    const row = await runOrder<Account>(context, options, what)
    await context.output.record(
      row,
      () => `${context.paint.green("✓")} ${row.name} is ${row.status}`,
    )
    return undefined
  }

export const lock = setStatus("locked")
export const suspend = setStatus("suspended")
export const unlock = setStatus("active")

const setFrozen =
  (operation: "freeze" | "unfreeze"): Action<StatusOptions> =>
  async (context, options, account = "") => {
    context.output.promises([...fieldsOf("POST /v1/accounts"), "status_reason", "deleting_at"])
    const { reason = "" } = options
    const row = await runOrder<Account & { sending_status: string }>(context, options, {
      ...{ operation, account, reason },
    })
    const done = `${row.name}: the sending status is ${row.sending_status}`
    await context.output.record(row, () => `${context.paint.green("✓")} ${done}`)
    return undefined
  }

export const freeze = setFrozen("freeze")
export const unfreeze = setFrozen("unfreeze")

interface PlanOptions extends LocalOptions {
  limit?: string[]
  /** False for `--no-limits`. */
  limits?: boolean
}

export const setPlan: Action<PlanOptions> = async (context, options, account = "", plan = "") => {
  const given = options.limit?.map(readLimit)
  const limits = options.limits === false ? null : given && Object.fromEntries(given)
  context.output.promises([...fieldsOf("POST /v1/accounts"), "status_reason", "deleting_at"])
  const row = await runOrder<Account>(context, options, {
    operation: "set_plan",
    account,
    plan,
    limits,
  })
  await context.output.record(
    row,
    () => `${context.paint.green("✓")} ${row.name} has the plan ${row.plan}`,
  )
}

/** `emails_per_month=5000`, or `=unlimited`. */
function readLimit(text: string): [string, number | null] {
  const [name = "", value = ""] = text.split("=")
  if (value === "unlimited") return [name, null]
  if (!/^\d+$/.test(value)) throw usage(`--limit: "${text}" is not name=number or name=unlimited`)
  return [name, Number(value)]
}

const accountColumns: Columns<Account> = {
  ID: "id",
  NAME: wide(({ name }) => name),
  SLUG: "slug",
  PLAN: "plan",
  STATUS: "status",
}

export const accounts: Action<LocalOptions> = async (context, options) => {
  const rows = await runOrder<Account[]>(context, options, { operation: "accounts" })
  await context.output.list(rows, accountColumns)
}

type User = { id: string; email: string; operator: boolean; mfa_enabled: boolean }

export const users: Action<LocalOptions> = async (context, options) => {
  const rows = await runOrder<User[]>(context, options, { operation: "users" })
  await context.output.list(rows, {
    ID: "id",
    EMAIL: wide(({ email }) => email),
    OPERATOR: ({ operator }) => (operator ? "yes" : ""),
    MFA: ({ mfa_enabled }) => (mfa_enabled ? "yes" : "no"),
  })
}

const changeUser =
  (what: (email: string) => AdminOrder, done: string): Action<LocalOptions> =>
  async (context, options, email = "") => {
    context.output.promises(fieldsOf("PATCH /v1/users/me"))
    const user = await runOrder<User>(context, options, what(email))
    await context.output.record(user, () => `${context.paint.green("✓")} ${user.email} ${done}`)
    return undefined
  }

export const lockUser = changeUser((email) => ({ operation: "lock_user", email }), "is locked")
export const unlockUser = changeUser(
  (email) => ({ operation: "unlock_user", email }),
  "is no longer locked",
)
const operator = (on: boolean) => (email: string) =>
  ({ operation: "set_operator", email, operator: on }) as const
export const grant = changeUser(operator(true), "is an operator of this instance")
export const withdraw = changeUser(operator(false), "is not an operator of this instance")

/** What SNS is to call with news of the instance's own mail; every caller that knows it may use it. */
export const sesCallback: Action<LocalOptions> = async (context, options) => {
  context.output.promises(["callback_url"])
  const answer = await runOrder<{ callback_url: string }>(context, options, {
    operation: "ses_callback",
  })
  await context.output.record(answer, () => answer.callback_url)
}
