import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { LIMIT, NEW_PASSWORD_STDIN } from "../shared-flags"

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
    .action(lazily(async () => (await import("../members")).list))

  members
    .command("invite <email>")
    .description("invite a person by mail")
    .option("--role <role>", "role: owner, admin, billing_admin or member (default: member)")
    .option("--grant <project=role>", "role in a project; may be repeated", several)
    .addHelpText("after", examples(`members invite kim@example.test --grant ${ID}=developer`))
    .action(lazily(async () => (await import("../members")).invite))

  members
    .command("set-role <user> <role>")
    .description("set a member's role: owner, admin, billing_admin or member")
    .addHelpText("after", examples(`members set-role ${ID} admin`))
    .action(lazily(async () => (await import("../members")).setRole))

  members
    .command("remove <user>")
    .description("remove a member from the account")
    .addHelpText("after", examples(`members remove ${ID} --yes`))
    .action(lazily(async () => (await import("../members")).remove))
}

function defineInvitations(invitations: Command) {
  invitations
    .command("list")
    .description("list the invitations of the account, newest first")
    .option("--status <status>", "show only this status: pending, accepted, revoked or expired")
    .option(...LIMIT)
    .addHelpText("after", examples("invitations list --status pending"))
    .action(lazily(async () => (await import("../members")).invitations))

  for (const [name, about] of [
    ["resend", "send an invitation again, with a new link for 7 days"],
    ["revoke", "revoke an invitation; its link stops working"],
  ] as const) {
    invitations
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`invitations ${name} ${ID}`))
      .action(lazily(async () => (await import("../members"))[name]))
  }
  invitations
    .command("show <token>")
    .description("show the account and the role of an invitation that you got")
    .addHelpText("after", examples(`invitations show ${TOKEN} --url https://mail.example.test`))
    .action(lazily(async () => (await import("../members")).show))

  invitations
    .command("accept <token>")
    .description("accept an invitation, as a new user or with your login")
    .option("--name <name>", "your name, if you are a new user")
    .option(...NEW_PASSWORD_STDIN)
    .addHelpText("after", examples(`invitations accept ${TOKEN} --url https://mail.example.test`))
    .action(lazily(async () => (await import("../members")).accept))
}
