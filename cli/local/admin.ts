import type { AdminOrder } from "../../src/operations/admin"
import { firstOwnerText } from "../commands/setup"
import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { optionWords } from "../lib/flags"
import { emailOf, password } from "../lib/prompts"
import { wide } from "../lib/table"
import { askServer, noServer, runOrder } from "./admin-socket"
import { dataSettings, type LocalOptions } from "./settings"

type Account = { id: string; name: string; slug: string; plan: string; status: string } & {
  sending_status: string
}

type User = { id: string; email: string; operator: boolean; mfa_enabled: boolean }

/** An order that changes one record. `fields` are those of the record; `done` says what came of it. */
const changing =
  <Row extends Record<string, unknown>, Options extends LocalOptions>(
    fields: readonly string[],
    orderOf: (
      word: string,
      options: Options,
      context: Context,
      more: string,
    ) => AdminOrder | Promise<AdminOrder>,
    done: (row: Row) => string,
  ): Action<Options> =>
  async (context, options, word = "", more = "") => {
    context.output.promises(fields)
    const order = await orderOf(word, options, context, more)
    const row = await runOrder<Row>(context, options, order)
    await context.output.record(row, () => `${context.paint.green("✓")} ${done(row)}`)
    return undefined
  }

const ACCOUNT = [...fieldsOf("POST /v1/accounts"), "status_reason", "deleting_at"]
const USER = fieldsOf("PATCH /v1/users/me")

interface BootstrapOptions extends LocalOptions {
  email?: string
  passwordStdin?: boolean
  name?: string
  accountName?: string
  projectName?: string
}

type FirstOwner = Parameters<typeof firstOwnerText>[1]

/** Setup without its token: a user that can read the data folder needs none. */
export const bootstrap: Action<BootstrapOptions> = async (context, options) => {
  const email = await emailOf(context, options)
  const { passwordStdin, accountName = "Main", projectName = "Default", name = null } = options
  const { output, paint } = context
  output.promises(["user", "account", "project", "api_key"])
  const created = await runOrder<FirstOwner>(context, options, {
    operation: "bootstrap",
    email,
    password: await password(context, { passwordStdin, is_new: true }),
    name,
    account_name: accountName,
    project_name: projectName,
  })
  const human = () => firstOwnerText("set up", created, paint)
  await output.record(created, human, created.api_key.key) // with --quiet too: it cannot be had again
  await output.next(`belfry login${optionWords({ email })}`)
}

interface ResetOptions extends LocalOptions {
  passwordStdin?: boolean
  keepMfa?: boolean
}

export const resetOwner = changing<User, ResetOptions>(
  USER,
  async (email, { passwordStdin, keepMfa: keep_mfa = false }, context) => {
    const secret = await password(context, { passwordStdin, is_new: true })
    return { operation: "reset_owner", email, password: secret, keep_mfa }
  },
  ({ email }) => `${email} has a new password; all their sessions have ended`,
)

interface StatusOptions extends LocalOptions {
  reason?: string
}

const setStatus = (status: "active" | "locked" | "suspended") =>
  changing<Account, StatusOptions>(
    ACCOUNT,
    (account, { reason = null }) => ({ operation: "set_status", account, status, reason }),
    (row) => `${row.name} is ${row.status}`,
  )

export const lock = setStatus("locked")
export const suspend = setStatus("suspended")
export const unlock = setStatus("active")

const setFrozen = (operation: "freeze" | "unfreeze") =>
  changing<Account, StatusOptions>(
    ACCOUNT,
    (account, { reason = "" }) => ({ operation, account, reason }),
    (row) => `${row.name}: the sending status is ${row.sending_status}`,
  )

export const freeze = setFrozen("freeze")
export const unfreeze = setFrozen("unfreeze")

interface PlanOptions extends LocalOptions {
  limit?: string[]
  /** False for `--no-limits`. */
  limits?: boolean
}

export const setPlan = changing<Account, PlanOptions>(
  ACCOUNT,
  (account, options, _, plan) => {
    const given = options.limit?.map(readLimit)
    // The new limits replace all that were set, also without --no-limits.
    const limits = given ? Object.fromEntries(given) : options.limits === false ? null : undefined
    return { operation: "set_plan", account, plan, limits }
  },
  (row) => `${row.name} has the plan ${row.plan}`,
)

/** `emails_per_month=5000`, or `=unlimited`. */
function readLimit(text: string): [string, number | null] {
  const [name = "", value = ""] = text.split("=")
  if (value === "unlimited") return [name, null]
  if (!/^\d+$/.test(value)) throw usage(`--limit: "${text}" is not name=number or name=unlimited`)
  return [name, Number(value)]
}

export const accounts: Action<LocalOptions> = async (context, options) => {
  const rows = await runOrder<Account[]>(context, options, { operation: "accounts" })
  await context.output.list(rows, {
    ID: "id",
    NAME: wide(({ name }) => name),
    SLUG: "slug",
    PLAN: "plan",
    STATUS: "status",
  })
}

export const users: Action<LocalOptions> = async (context, options) => {
  const rows = await runOrder<User[]>(context, options, { operation: "users" })
  await context.output.list(rows, {
    ID: "id",
    EMAIL: wide(({ email }) => email),
    OPERATOR: ({ operator }) => (operator ? "yes" : ""),
    MFA: ({ mfa_enabled }) => (mfa_enabled ? "yes" : "no"),
  })
}

const changeUser = (orderOf: (email: string) => AdminOrder, done: string) =>
  changing<User, LocalOptions>(USER, orderOf, ({ email }) => `${email} ${done}`)

const operator = (on: boolean, done: string) =>
  changeUser((email) => ({ operation: "set_operator", email, operator: on }), done)

export const lockUser = changeUser((email) => ({ operation: "lock_user", email }), "is locked")
export const unlockUser = changeUser(
  (email) => ({ operation: "unlock_user", email }),
  "is no longer locked",
)
export const grant = operator(true, "is an operator of this instance")
export const withdraw = operator(false, "is not an operator of this instance")

/** What SNS is to call with news of the instance's own mail; every caller that knows it may use it. */
export const sesCallback: Action<LocalOptions> = async (context, options) => {
  context.output.promises(["callback_url"])
  const order = { operation: "ses_callback" } as const
  const answer = await runOrder<{ callback_url: string }>(context, options, order)
  await context.output.record(answer, () => answer.callback_url)
}

type SignInLink = { open_url: string; expires_in: number }

/** Prints a new link to the pages of the running `up`. Each one signs in once. */
export const open: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  context.output.promises(["open_url", "expires_in"])
  const loaded = dataSettings(context.flags, options)
  const link = await askServer<SignInLink>(loaded, { operation: "sign_in_link" })
  if (!link) throw noServer(loaded.values.data_dir)
  const minutes = link.expires_in / 60
  await context.output.record(link, () => link.open_url, link.open_url)
  await context.output.note(`It works once, for ${minutes} minutes, in a browser on this machine.`)
}
