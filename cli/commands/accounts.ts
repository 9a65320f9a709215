import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { environment } from "../lib/environment"
import { exits, Failure } from "../lib/errors"
import { flag } from "../lib/field-flags"
import { METRICS } from "../lib/flags"
import { onOff } from "../lib/input"
import { profilesPath, readProfiles, saveProfile } from "../lib/profiles"
import { confirm } from "../lib/prompts"
import { asks, own, row } from "../lib/resource"
import { ago, idColumn, wide } from "../lib/table"

/** Later commands work there. The server is asked first, so that a typing error is told now. */
const useAccount: Action<object> = async (context, _, id = "") => {
  context.output.promises(fieldsOf("POST /v1/accounts"))
  const client = context.client(undefined, { account_id: id, project_id: null })
  const { data } = await client.call("GET /v1/accounts/me")
  choose(context, { account_id: data.id, project_id: null })
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} later commands use the account ${data.name}`)
  await output.next("belfry projects list")
}

const useProject: Action<object> = async (context, _, project_id = "") => {
  const { output, paint } = context
  output.promises(fieldsOf("POST /v1/projects"))
  const { data } = await context.call("GET /v1/projects/{project_id}", { params: { project_id } })
  choose(context, { account_id: data.account_id, project_id: data.id })
  await output.record(data, () => `${paint.green("✓")} later commands use the project ${data.name}`)
  await output.next("belfry keys list")
}

/** Remembers the account and the project in the profile of the person. */
function choose(context: Context, chosen: { account_id: string; project_id: string | null }) {
  const { profile: name, signed_in } = context.connection()
  const path = profilesPath(environment)
  const profile = name === null ? undefined : readProfiles(path).profiles[name]
  if (!profile || !signed_in || name === null) {
    const hint = context.output.again("belfry login")
    const text = "Only a person that is signed in can choose. An API key belongs to one project."
    throw new Failure(exits.unauthorized, "unauthorized", text, { hint })
  }
  saveProfile(path, name, { ...profile, ...chosen })
}

export const useProjectRow = own("use <id>", useProject, {
  about: "choose the project that later commands use",
})

/** Accounts: each pays for its projects, and its members work in them. */
export const accountRows = [
  row("list", "GET /v1/accounts", {
    about: "list your accounts, newest first",
    columns: (context) => ({
      "": ({ id }) => (id === context.connection().account_id ? "*" : ""),
      ID: idColumn("account"),
      NAME: wide(({ name }) => name),
      ROLE: "role",
      PLAN: "plan",
      STATUS: "status",
      AGE: ago(({ created_at }) => created_at),
    }),
  }),
  row("create", "POST /v1/accounts", {
    about: "create an account that you own",
    example: '--name "Acme Ltd"',
    flags: { name: "name of the account" },
    done: ({ name, id }) => `created the account ${name} ${id}`,
    next: ({ id }) => `accounts use ${id}`,
  }),
  row("get [id]", "GET /v1/accounts/me", {
    about: "show one account (default: the current one)",
    of_account: true,
  }),
  row("update [id]", "PATCH /v1/accounts/me", {
    about: "change name and settings of an account (default: the current one)",
    example: "--require-mfa on",
    of_account: true,
    flags: {
      name: "new name",
      "settings.track_opens": flag(
        ["--track-opens <on|off>", "count opened mail, unless a project says otherwise"],
        onOff,
      ),
      "settings.track_clicks": flag(
        ["--track-clicks <on|off>", "count clicked links, unless a project says otherwise"],
        onOff,
      ),
      "settings.require_mfa": flag(
        ["--require-mfa <on|off>", "require a second factor from every member"],
        onOff,
      ),
    },
  }),
  row("delete <id>", "DELETE /v1/accounts/me", {
    about: "delete an account; it can be restored for 7 days",
    of_account: true,
    flags: { confirm: false },
    // The server wants the name. A person that types it, or gives --yes, means this account.
    async confirm(context, _, client) {
      const { name } = (await client.call("GET /v1/accounts/me")).data
      const what = `The account ${name}, its projects and its keys stop now. Queued mail is still sent. The account can be restored for 7 days.`
      await confirm(context, what, name)
      return { confirm: name }
    },
    done: ({ id }, _, { confirm: name }) => `deleted ${name} (${id})`,
    next: ({ id }) => `accounts restore ${id}`,
  }),
  row("restore <id>", "POST /v1/accounts/me/restore", {
    of_account: true,
    done: ({ name }) => `restored ${name}`,
  }),
  row("transfer <user>", "POST /v1/accounts/me/transfer", {
    about: "make another member the owner; you stay as an admin",
    confirm: asks(
      (user) => `${user} becomes the owner of the account. You stay as an admin.`,
      "transfer",
    ),
    done: ({ name }) => `${name} has a new owner`,
  }),
  row("plan", "GET /v1/accounts/me/plan", {
    about: "show the plan with its limits and features",
    values: ({ limits }) => ({
      limits: Object.fromEntries(
        Object.entries(limits).map(([name, limit]) => [name, limit ?? "unlimited"]),
      ),
    }),
  }),
  row("resources", "GET /v1/accounts/me/resource-counts", {
    about: "show the number of each resource, with its limit",
  }),
  row("freeze <id>", "POST /v1/admin/accounts/{account_id}/freeze", {
    about: "stop all sending of an account (operators)",
    example: "--reason phishing",
    flags: { reason: "reason; every refused send names it" },
    done: ({ name }) => `${name} is frozen`,
    next: ({ id }) => `accounts unfreeze ${id}`,
  }),
  row("unfreeze <id>", "POST /v1/admin/accounts/{account_id}/unfreeze", {
    about: "let a frozen account send again (operators)",
    example: '--reason "the list was cleaned"',
    flags: { reason: "reason, for the audit log" },
    done: ({ name }) => `${name} may send again`,
  }),
  row("breakdown", "GET /v1/accounts/me/project-breakdown", {
    about: "show the usage and the API keys of each project in a month",
    example: "--period 2026-11",
    columns: {
      ID: idColumn("project", ({ project_id }) => project_id),
      NAME: wide(({ name }) => name),
      ...Object.fromEntries(
        METRICS.map((metric) => [metric.toUpperCase(), ({ usage }) => usage[metric] ?? 0]),
      ),
      KEYS: ({ resources }) => resources.api_keys ?? 0,
    },
  }),
  own("use <id>", useAccount, { about: "choose the account that later commands use" }),
]
