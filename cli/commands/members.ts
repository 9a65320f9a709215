import type { Command } from "commander"
import { examples, lazily, several } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const TOKEN = "belfry_invitation_…"

/** People of the account, and those who are asked to join it. */
export function define(program: Command): void {
  defineMembers(
    program
      .command("members")
      .description("people of the account")
      .addHelpText("after", examples("members list")),
  )
  defineInvitations(
    program
      .command("invitations")
      .description("people asked to join")
      .addHelpText("after", examples("invitations list --status pending")),
  )
}

function defineMembers(members: Command) {
  members
    .command("list")
    .description("the members of the account")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("members list"))
    .action(lazily(async () => (await import("../members")).list))

  members
    .command("invite <email>")
    .description("send an invitation by mail")
    .option("--role <role>", "owner, admin, billing_admin or member (default: member)")
    .option("--grant <project=role>", "with this role in a project; may be repeated", several)
    .addHelpText("after", examples(`members invite kim@example.test --grant ${ID}=developer`))
    .action(lazily(async () => (await import("../members")).invite))

  members
    .command("set-role <user> <role>")
    .description("make somebody owner, admin, billing_admin or member")
    .addHelpText("after", examples(`members set-role ${ID} admin`))
    .action(lazily(async () => (await import("../members")).setRole))

  members
    .command("remove <user>")
    .description("take somebody out of the account")
    .addHelpText("after", examples(`members remove ${ID} --yes`))
    .action(lazily(async () => (await import("../members")).remove))
}

function defineInvitations(invitations: Command) {
  invitations
    .command("list")
    .description("the invitations of the account, newest first")
    .option("--status <status>", "pending, accepted, revoked or expired")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("invitations list --status pending"))
    .action(lazily(async () => (await import("../members")).invitations))

  for (const [name, about] of [
    ["resend", "send it again, with another link and another 7 days"],
    ["revoke", "take it back: its link stops working"],
  ] as const) {
    invitations
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`invitations ${name} ${ID}`))
      .action(lazily(async () => (await import("../members"))[name]))
  }
  invitations
    .command("show <token>")
    .description("what an invitation you got is about")
    .addHelpText("after", examples(`invitations show ${TOKEN} --url https://mail.example.test`))
    .action(lazily(async () => (await import("../members")).show))

  invitations
    .command("accept <token>")
    .description("join: as a new person, or signed in as the one invited")
    .option("--name <name>", "your name, if you are new here")
    .option("--password-stdin", "read the new password from stdin")
    .addHelpText("after", examples(`invitations accept ${TOKEN} --url https://mail.example.test`))
    .action(lazily(async () => (await import("../members")).accept))
}
