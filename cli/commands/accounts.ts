import type { Command } from "commander"
import type { Action, Context } from "../lib/context"
import { environment } from "../lib/environment"
import { exits, Failure, usage } from "../lib/errors"
import { account_fields, deleted_fields } from "../lib/fields"
import { LIMIT, PERIOD, SLUG } from "../lib/flags"
import { given, onOff } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { profilesPath, readProfiles, saveProfile } from "../lib/profiles"
import { confirm } from "../lib/prompts"
import type { Account, Deleted, Used } from "../lib/records"
import { examples, run } from "../lib/run"
import { type Column, fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, month } from "../lib/time"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Accounts: each pays for its projects, and its members work in them. */
export function define(program: Command): void {
  const accounts = program
    .command("accounts")
    .description("manage the accounts that you belong to")
    .addHelpText("after", examples("accounts list"))

  accounts
    .command("list")
    .description("list your accounts, newest first")
    .option(...LIMIT)
    .addHelpText("after", examples("accounts list"))
    .action(run(list))

  accounts
    .command("create")
    .description("create an account that you own")
    .requiredOption("--name <name>", "name of the account")
    .option(...SLUG)
    .addHelpText("after", examples('accounts create --name "Acme Ltd"'))
    .action(run(create))

  accounts
    .command("update [id]")
    .description("change name and settings of an account (default: the current one)")
    .option("--name <name>", "new name")
    .option("--track-opens <on|off>", "count opened mail, unless a project says otherwise")
    .option("--track-clicks <on|off>", "count clicked links, unless a project says otherwise")
    .option("--require-mfa <on|off>", "require a second factor from every member")
    .addHelpText("after", examples("accounts update --require-mfa on"))
    .action(run(update))

  for (const [name, about, arg] of [
    ["get", "show one account (default: the current one)", "[id]"],
    ["delete", "delete an account; it can be restored for 7 days", "<id>"],
    ["restore", "restore a deleted account", "<id>"],
    ["use", "choose the account that later commands use", "<id>"],
    ["transfer", "make another member the owner; you stay as an admin", "<user>"],
  ] as const) {
    accounts
      .command(`${name} ${arg}`)
      .description(about)
      .addHelpText("after", examples(`accounts ${name} ${ID}`))
      .action(run({ get, delete: remove, restore, use, transfer }[name]))
  }
  for (const [name, about] of [
    ["plan", "show the plan with its limits and features"],
    ["resources", "show the number of each resource, with its limit"],
  ] as const) {
    accounts
      .command(name)
      .description(about)
      .addHelpText("after", examples(`accounts ${name}`))
      .action(run({ plan, resources }[name]))
  }
  accounts
    .command("breakdown")
    .description("show the usage of each project in a month")
    .option(...PERIOD)
    .addHelpText("after", examples("accounts breakdown --period 2026-11"))
    .action(run(breakdown))
}

const ALL = "/v1/accounts"
const ME = "/v1/accounts/me"

interface ListOptions {
  limit?: string
}

export const list: Action<ListOptions> = async (context, { limit }) => {
  const found = await listUpTo<Account>(context.client(), ALL, {}, limitOf(limit))
  const { account_id } = context.connection()
  const columns: Column<Account>[] = [
    { title: "", cell: ({ id }) => (id === account_id ? "*" : "") },
    idColumn("account"),
    { title: "NAME", cell: ({ name }) => name, flexible: true },
    { title: "ROLE", cell: ({ role }) => role ?? "" },
    { title: "PLAN", cell: ({ plan }) => plan },
    { title: "STATUS", cell: ({ status }) => status },
    { title: "AGE", cell: ({ created_at }) => age(created_at) },
  ]
  await context.output.list(found.rows, columns)
  if (found.more) await context.output.next(`belfry accounts list --limit ${2 * limitOf(limit)}`)
  return undefined
}

interface CreateOptions {
  name: string
  slug?: string
}

export const create: Action<CreateOptions> = async (context, { name, slug }) => {
  context.output.promises(account_fields)
  const { data } = await context.client().post<Account>(ALL, given({ name, slug }))
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} created the account ${data.name} ${data.id}`,
  )
  await context.output.next(`belfry accounts use ${data.id}`)
  return undefined
}

/** The account that is named, else the one worked in. */
const clientOf = (context: Context, id: string) =>
  context.client(undefined, id ? { account_id: id, project_id: null } : {})

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await clientOf(context, id).get<Account>(ME)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

function shown(account: Account, paint: Paint): string {
  const { id, name, slug, plan, status, settings, created_at } = account
  const switches = Object.entries(settings).map(([key, on]) => [key, on ? "on" : "off"] as const)
  const own = Object.entries({ id, name, slug, plan, status, created: created_at })
  return fields([...own, ...switches], paint)
}

interface UpdateOptions {
  name?: string
  trackOpens?: string
  trackClicks?: string
  requireMfa?: string
}

export const update: Action<UpdateOptions> = async (context, options, id = "") => {
  const settings = given({
    track_opens: onOff(options.trackOpens, "--track-opens"),
    track_clicks: onOff(options.trackClicks, "--track-clicks"),
    require_mfa: onOff(options.requireMfa, "--require-mfa"),
  })
  const changes = given({
    name: options.name,
    settings: Object.keys(settings).length > 0 ? settings : undefined,
  })
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises(account_fields)
  const { data } = await clientOf(context, id).patch<Account>(ME, changes)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

/** The server wants the name. A person that types it, or gives --yes, means this account. */
export const remove: Action<object> = async (context, _, id = "") => {
  context.output.promises(deleted_fields)
  const client = clientOf(context, id)
  const { data: account } = await client.get<Account>(ME)
  const what = `The account ${account.name}, its projects and its keys stop now. Queued mail is still sent. The account can be restored for 7 days.`
  await confirm(context, what, account.name)
  const { data } = await client.remove<Deleted>(ME, {}, { confirm: account.name })
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} deleted ${account.name} (${data.id})`)
  await output.next(`belfry accounts restore ${data.id}`)
  return undefined
}

export const restore: Action<object> = async (context, _, id = "") => {
  context.output.promises(account_fields)
  const { data } = await clientOf(context, id).post<Account>(`${ME}/restore`)
  await context.output.record(data, () => `${context.paint.green("✓")} restored ${data.name}`)
  return undefined
}

export const transfer: Action<object> = async (context, _, user_id = "") => {
  context.output.promises(account_fields)
  await confirm(
    context,
    `${user_id} becomes the owner of the account. You stay as an admin.`,
    "transfer",
  )
  const { data } = await context.client().post<Account>(`${ME}/transfer`, { user_id })
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} ${data.name} has a new owner`,
  )
  return undefined
}

/** Later commands work there; the server is asked first, so that a typo is told now. */
export const use: Action<object> = async (context, _, id = "") => {
  context.output.promises(account_fields)
  const { data } = await clientOf(context, id).get<Account>(ME)
  choose(context, { account_id: data.id, project_id: null })
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} later commands use the account ${data.name}`,
  )
  await context.output.next("belfry projects list")
  return undefined
}

/** Remembers the place in the profile of the person. */
export function choose(
  context: Context,
  place: { account_id?: string; project_id: string | null },
) {
  const { profile: name, signed_in } = context.connection()
  const path = profilesPath(environment)
  const profile = name === null ? undefined : readProfiles(path).profiles[name]
  if (!profile || !signed_in || name === null) {
    const hint = context.output.again("belfry login")
    const text = "Only a person that is signed in can choose. An API key belongs to one project."
    throw new Failure(exits.unauthorized, "unauthorized", text, { hint })
  }
  saveProfile(path, name, { ...profile, ...place })
}

type Plan = {
  plan: string
  limits: Record<string, number | null>
  features: Record<string, boolean>
  usage: Record<string, Used>
}

export const plan: Action<object> = async (context) => {
  const { data } = await context.client().get<Plan>(`${ME}/plan`)
  await context.output.record(data, () => {
    const limits = Object.entries(data.limits).map(([name, limit]) => [name, limit ?? "unlimited"])
    const features = Object.entries(data.features).map(([name, on]) => [name, on ? "yes" : "no"])
    const pairs = [["plan", data.plan], ...limits, ...features] as [string, unknown][]
    return fields(pairs, context.paint)
  })
  return undefined
}

type Counts = Record<string, { used: number; limit: number | null }>

export const resources: Action<object> = async (context) => {
  const { data } = await context.client().get<Counts>(`${ME}/resource-counts`)
  const lines = Object.entries(data).map(
    ([name, { used, limit }]) => [name, `${used} of ${limit ?? "unlimited"}`] as const,
  )
  await context.output.record(data, () => fields(lines, context.paint))
  return undefined
}

type Share = {
  project_id: string
  name: string
  usage: Record<string, number>
  resources: Record<string, number>
}

export const breakdown: Action<{ period?: string }> = async (context, options) => {
  const period = month(options.period, "--period")
  const { data } = await context.client().get<Share[]>(`${ME}/project-breakdown`, { period })
  await context.output.list(data, [
    idColumn("project", ({ project_id }: Share) => project_id),
    { title: "NAME", cell: ({ name }) => name, flexible: true },
    ...["email", "push", "sms", "in_app", "mau"].map((metric) => ({
      title: metric.toUpperCase(),
      cell: ({ usage }: Share) => String(usage[metric] ?? 0),
    })),
    { title: "KEYS", cell: ({ resources: { api_keys } }) => String(api_keys ?? 0) },
  ])
  return undefined
}
