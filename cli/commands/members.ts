import type { Command } from "commander"
import type { Action } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { deleted_fields, invitation_fields, member_fields } from "../lib/fields"
import { LIMIT, NEW_PASSWORD_STDIN, optionWords } from "../lib/flags"
import { limitOf, listUpTo } from "../lib/paging"
import { ask, confirm, password } from "../lib/prompts"
import type { Deleted, Invitation, Member } from "../lib/records"
import { examples, run, several } from "../lib/run"
import type { SessionAnswer } from "../lib/session"
import { fields, idColumn } from "../lib/table"
import { age } from "../lib/time"
import { signed_in_fields, signedIn } from "./login"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const TOKEN = "belfry_invitation_…"

/** People of the account, and people with an invitation to it. */
export function define(program: Command): void {
  defineMembers(
    program
      .command("members")
      .description("manage the members of the account")
      .addHelpText("after", examples("members list")),
  )
  defineInvitations(
    program
      .command("invitations")
      .description("manage the invitations to the account")
      .addHelpText("after", examples("invitations list --status pending")),
  )
}

function defineMembers(members: Command) {
  members
    .command("list")
    .description("list the members of the account, newest first")
    .option(...LIMIT)
    .addHelpText("after", examples("members list"))
    .action(run(list))

  members
    .command("invite <email>")
    .description("invite a person by mail")
    .option("--role <role>", "role: owner, admin, billing_admin or member (default: member)")
    .option("--grant <project=role>", "role in a project; may be repeated", several)
    .addHelpText("after", examples(`members invite kim@example.test --grant ${ID}=developer`))
    .action(run(invite))

  members
    .command("set-role <user> <role>")
    .description("set a member's role: owner, admin, billing_admin or member")
    .addHelpText("after", examples(`members set-role ${ID} admin`))
    .action(run(setRole))

  members
    .command("remove <user>")
    .description("remove a member from the account")
    .addHelpText("after", examples(`members remove ${ID} --yes`))
    .action(run(remove))
}

function defineInvitations(invitations: Command) {
  invitations
    .command("list")
    .description("list the invitations of the account, newest first")
    .option("--status <status>", "show only this status: pending, accepted, revoked or expired")
    .option(...LIMIT)
    .addHelpText("after", examples("invitations list --status pending"))
    .action(run(listInvitations))

  for (const [name, about] of [
    ["resend", "send an invitation again, with a new link for 7 days"],
    ["revoke", "revoke an invitation; its link stops working"],
  ] as const) {
    invitations
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`invitations ${name} ${ID}`))
      .action(run({ resend, revoke }[name]))
  }
  invitations
    .command("show <token>")
    .description("show the account and the role of an invitation that you got")
    .addHelpText("after", examples(`invitations show ${TOKEN} --url https://mail.example.test`))
    .action(run(show))

  invitations
    .command("accept <token>")
    .description("accept an invitation, as a new user or with your login")
    .option("--name <name>", "your name, if you are a new user")
    .option(...NEW_PASSWORD_STDIN)
    .addHelpText("after", examples(`invitations accept ${TOKEN} --url https://mail.example.test`))
    .action(run(accept))
}

const MEMBERS = "/v1/accounts/me/members"
const INVITATIONS = "/v1/accounts/me/invitations"
const member = (user: string) => `${MEMBERS}/${encodeURIComponent(user)}`
const invitation = (id: string) => `${INVITATIONS}/${encodeURIComponent(id)}`

interface ListOptions {
  limit?: string
}

export const list: Action<ListOptions> = async (context, { limit }) => {
  const found = await listUpTo<Member>(context.client(), MEMBERS, {}, limitOf(limit))
  await context.output.list(found.rows, [
    idColumn("member", ({ user_id }: Member) => user_id),
    { title: "EMAIL", cell: ({ email }) => email, flexible: "last" },
    { title: "NAME", cell: ({ name }) => name ?? "", flexible: true },
    { title: "ROLE", cell: ({ role }) => role },
    { title: "MFA", cell: ({ mfa_enabled }) => (mfa_enabled ? "yes" : "no") },
    { title: "ACTIVE", cell: ({ last_active_at }) => age(last_active_at) || "never" },
  ])
  if (found.more) await context.output.next(`belfry members list --limit ${2 * limitOf(limit)}`)
  return undefined
}

interface InviteOptions {
  role?: string
  grant?: string[]
}

export const invite: Action<InviteOptions> = async (context, options, email = "") => {
  const { role = "member", grant = [] } = options
  context.output.promises(invitation_fields)
  const body = { email, role, projects: grant.map(readGrant) }
  const { data } = await context.client().post<Invitation>(`${MEMBERS}/invite`, body)
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} invited ${email} (${data.id})`,
  )
  await context.output.next("belfry invitations list")
  return undefined
}

/** `<project>=developer` */
function readGrant(text: string) {
  const [project_id, role] = text.split("=")
  if (!project_id || !role) throw usage(`--grant: "${text}" is not <project>=<role>`)
  return { project_id, role }
}

export const setRole: Action<object> = async (context, _, user = "", role = "") => {
  context.output.promises(member_fields)
  const { data } = await context.client().patch<Member>(member(user), { role })
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} ${data.email} has the role ${data.role}`,
  )
  return undefined
}

export const remove: Action<object> = async (context, _, user = "") => {
  context.output.promises(deleted_fields)
  await confirm(context, `${user} will lose every role in this account.`, "remove")
  const { data } = await context.client().remove<Deleted>(member(user))
  await context.output.record(data, () => `${context.paint.green("✓")} removed ${data.id}`)
  return undefined
}

interface InvitationListOptions extends ListOptions {
  status?: string
}

export const listInvitations: Action<InvitationListOptions> = async (
  context,
  { status, limit },
) => {
  const client = context.client()
  const found = await listUpTo<Invitation>(client, INVITATIONS, { status }, limitOf(limit))
  await context.output.list(found.rows, [
    idColumn("invitation"),
    { title: "EMAIL", cell: ({ email }) => email, flexible: "last" },
    { title: "ROLE", cell: ({ role }) => role },
    { title: "STATUS", cell: (row) => row.status },
    { title: "ENDS", cell: ({ expires_at }) => age(expires_at) },
  ])
  if (found.more) {
    const words = optionWords({ status, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry invitations list${words}`)
  }
  return undefined
}

export const resend: Action<object> = async (context, _, id = "") => {
  context.output.promises(invitation_fields)
  const { data } = await context.client().post<Invitation>(`${invitation(id)}/resend`)
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} sent the invitation to ${data.email} again`,
  )
  return undefined
}

export const revoke: Action<object> = async (context, _, id = "") => {
  context.output.promises(deleted_fields)
  await confirm(context, `The link of invitation ${id} will stop working.`, "revoke")
  const { data } = await context.client().remove<Deleted>(invitation(id))
  await context.output.record(data, () => `${context.paint.green("✓")} revoked ${data.id}`)
  return undefined
}

type Invited = {
  email: string
  account_name: string
  role: string
  expires_at: string
  user_exists: boolean
}

const byToken = (token: string) => `/v1/invitations/${encodeURIComponent(token)}`

export const show: Action<object> = async (context, _, token = "") => {
  const { data } = await context.anonymous().get<Invited>(byToken(token))
  await context.output.record(data, () => fields(Object.entries(data), context.paint))
  return undefined
}

interface AcceptOptions {
  name?: string
  passwordStdin?: boolean
}

/** A new person chooses a name and a password; one with a login accepts signed in. */
export const accept: Action<AcceptOptions> = async (context, options, token = "") => {
  context.output.promises(signed_in_fields)
  const stranger = context.anonymous()
  const { data: seen } = await stranger.get<Invited>(byToken(token))
  const path = `${byToken(token)}/accept`
  if (seen.user_exists) {
    if (!context.connection().signed_in) {
      const text = `${seen.email} already has a login here. Sign in, then accept the invitation.`
      const hint = context.output.again(`belfry login${optionWords({ email: seen.email })}`)
      throw new Failure(exits.unauthorized, "unauthorized", text, { hint })
    }
    const { data } = await context.client().post<SessionAnswer>(path)
    return signedIn(context, context.connection().url, data)
  }
  await context.output.note(`${seen.account_name} invites ${seen.email} as ${seen.role}.`)
  const name = options.name ?? (await ask(context, "Your name", "give it with --name"))
  const { passwordStdin } = options
  const body = { name, password: await password(context, { passwordStdin, is_new: true }) }
  const { data } = await stranger.post<SessionAnswer>(path, body)
  return signedIn(context, stranger.url, data)
}
