import type { Command } from "commander"
import { ACCOUNT_NAME, DATA_DIR, PASSWORD_STDIN, PROJECT_NAME, SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** For the person that runs the instance, on its machine: these commands need no credential. */
export function define(program: Command): void {
  const admin = program
    .command("admin")
    .description("administer the instance, on its own machine")
    .addHelpText("after", examples("admin accounts"))

  local(admin, "bootstrap", "create the first owner, without the setup token")
    .option("--email <address>", "email address of the owner")
    .option(...PASSWORD_STDIN)
    .option("--name <name>", "name of the owner")
    .option(...ACCOUNT_NAME)
    .option(...PROJECT_NAME)
    .addHelpText("after", examples("admin bootstrap --email ann@example.test"))
    .action(lazily(async () => (await import("../local/admin")).bootstrap))

  local(admin, "reset-owner <email>", "set a new password for a person; all their sessions end")
    .option(...PASSWORD_STDIN)
    .option("--keep-mfa", "keep the second factor")
    .addHelpText("after", examples("admin reset-owner ann@example.test"))
    .action(lazily(async () => (await import("../local/admin")).resetOwner))

  for (const [name, about] of [
    ["lock", "lock an account (id, slug or name): refuse all its requests"],
    ["suspend", "suspend an account that broke the rules: refuse all its requests"],
    ["unlock", "make a locked or suspended account active again"],
  ] as const) {
    local(admin, `${name} <account>`, about)
      .option("--reason <text>", "reason; it is stored with the account")
      .addHelpText("after", examples(`admin ${name} acme`))
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }

  for (const [name, about] of [
    ["freeze", "stop all sending of an account (id, slug or name)"],
    ["unfreeze", "let a frozen account send again; its rates begin anew"],
  ] as const) {
    local(admin, `${name} <account>`, about)
      .requiredOption("--reason <text>", "reason; the audit log keeps it")
      .addHelpText("after", examples(`admin ${name} acme --reason phishing`))
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }

  const plan = admin
    .command("plan")
    .description("manage the plans of accounts")
    .addHelpText("after", examples("admin plan set acme pro"))
  local(
    plan,
    "set <account> <plan>",
    "set the plan of an account: free, starter, pro, scale or enterprise",
  )
    .option("--limit <name=number>", "limit that replaces the plan's own; may be repeated", several)
    .option("--no-limits", "remove the limits that --limit set")
    .addHelpText("after", examples("admin plan set acme pro --limit emails_per_month=500000"))
    .action(lazily(async () => (await import("../local/admin")).setPlan))

  defineLists(admin)
}

function defineLists(admin: Command) {
  for (const [name, about] of [
    ["accounts", "list all accounts"],
    ["users", "list all people with a login"],
  ] as const) {
    local(admin, name, about)
      .addHelpText("after", examples(`admin ${name}`))
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }
  local(admin, "ses-callback", "show the URL that gets the SES events of the instance's own mail")
    .addHelpText("after", examples("admin ses-callback"))
    .action(lazily(async () => (await import("../local/admin")).sesCallback))
  local(admin, "rotate-master-key", "replace the master key, also while the server works")
    .option("--master-key <file>", "file with the new key, 32 bytes in base64 (default: a new one)")
    .option("--end-links", "end the links and addresses of mail that was sent")
    .addHelpText("after", examples("admin rotate-master-key"))
    .action(lazily(async () => (await import("../local/master-key")).rotate))
  local(admin, "lost-key", "list the secrets that are gone with a lost master key")
    .option("--accept", "go on with the key at hand, or with a new one")
    .addHelpText("after", examples("admin lost-key", "admin lost-key --accept"))
    .action(lazily(async () => (await import("../local/master-key")).lostKey))
  for (const [name, action, about] of [
    ["lock-user", "lockUser", "end all sessions of a person, and refuse new ones"],
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
    .option(...DATA_DIR)
    .option(...SET, several)
