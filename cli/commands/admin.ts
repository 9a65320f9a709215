import type { Command } from "commander"
import { examples, lazily, several } from "../action"

/** For whoever runs the instance, at the machine itself: these need no credential. */
export function define(program: Command): void {
  const admin = program
    .command("admin")
    .description("administer the instance, on its own machine")
    .addHelpText("after", examples("admin accounts"))

  local(admin, "bootstrap", "make the first owner, without the setup token")
    .option("--email <address>", "the owner's")
    .option("--password-stdin", "read the password from stdin")
    .option("--name <name>", "the owner's name")
    .option("--account-name <name>", "what the account is called (default: Main)")
    .option("--project-name <name>", "what the first project is called (default: Default)")
    .addHelpText("after", examples("admin bootstrap --email ann@example.test"))
    .action(lazily(async () => (await import("../local/admin")).bootstrap))

  local(admin, "reset-owner <email>", "a new password for somebody; ends every session")
    .option("--password-stdin", "read the password from stdin")
    .option("--keep-mfa", "leave the second factor as it is")
    .addHelpText("after", examples("admin reset-owner ann@example.test"))
    .action(lazily(async () => (await import("../local/admin")).resetOwner))

  for (const [name, about] of [
    ["lock", "refuse every request of an account, by id, slug or name"],
    ["suspend", "the same, for a violation of the rules"],
    ["unlock", "let a locked or suspended account go on"],
  ] as const) {
    local(admin, `${name} <account>`, about)
      .option("--reason <text>", "why; kept with the account")
      .addHelpText("after", examples(`admin ${name} acme`))
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }

  const plan = admin
    .command("plan")
    .description("plans of accounts")
    .addHelpText("after", examples("admin plan set acme pro"))
  local(plan, "set <account> <plan>", "free, starter, pro, scale or enterprise")
    .option("--limit <name=number>", "a number in place of the plan's; may be repeated", several)
    .option("--no-limits", "take back such numbers")
    .addHelpText("after", examples("admin plan set acme pro --limit emails_per_month=500000"))
    .action(lazily(async () => (await import("../local/admin")).setPlan))

  defineLists(admin)
}

function defineLists(admin: Command) {
  for (const [name, about] of [
    ["accounts", "every account"],
    ["users", "every person with a login"],
  ] as const) {
    local(admin, name, about)
      .addHelpText("after", examples(`admin ${name}`))
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }
  local(admin, "ses-callback", "where SNS sends what SES tells of the instance's own mail")
    .addHelpText("after", examples("admin ses-callback"))
    .action(lazily(async () => (await import("../local/admin")).sesCallback))
  for (const [name, action, about] of [
    ["lock-user", "lockUser", "end every session of a person, and refuse new ones"],
    ["unlock-user", "unlockUser", "let a locked person sign in again"],
    ["grant-operator", "grant", "make a person an operator of the instance"],
    ["withdraw-operator", "withdraw", "take the operator role from a person"],
  ] as const) {
    local(admin, `${name} <email>`, about)
      .addHelpText("after", examples(`admin ${name} kim@example.test`))
      .action(lazily(async () => (await import("../local/admin"))[action]))
  }
}

const local = (parent: Command, name: string, about: string): Command =>
  parent
    .command(name)
    .description(about)
    .option("--data-dir <dir>", "folder for everything that is kept")
    .option("--set <key=value>", "any other setting; may be repeated", several)
