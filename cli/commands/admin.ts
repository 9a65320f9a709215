import type { Command } from "commander"
import { ACCOUNT_NAME, DATA_DIR, PASSWORD_STDIN, PROJECT_NAME, SET } from "../lib/flags"
import { addCommand, lazily, several } from "../lib/run"

/** For the person that runs the instance, on its machine: these commands need no credential. */
export function define(program: Command): void {
  const about = "administer the instance, on its own machine"
  const admin = addCommand(program, "admin", about, "admin accounts")

  const owner = "create the first owner, without the setup token"
  local(admin, "bootstrap", owner, "admin bootstrap --email ann@example.test")
    .option("--email <address>", "email address of the owner")
    .option(...PASSWORD_STDIN)
    .option("--name <name>", "name of the owner")
    .option(...ACCOUNT_NAME)
    .option(...PROJECT_NAME)
    .action(lazily(async () => (await import("../local/admin")).bootstrap))

  const reset = "set a new password for a person; all their sessions end"
  local(admin, "reset-owner <email>", reset, "admin reset-owner ann@example.test")
    .option(...PASSWORD_STDIN)
    .option("--keep-mfa", "keep the second factor")
    .action(lazily(async () => (await import("../local/admin")).resetOwner))

  for (const [name, about] of [
    ["lock", "lock an account (id, slug or name): refuse all its requests"],
    ["suspend", "suspend an account that broke the rules: refuse all its requests"],
    ["unlock", "make a locked or suspended account active again"],
  ] as const) {
    local(admin, `${name} <account>`, about, `admin ${name} acme`)
      .option("--reason <text>", "reason; it is stored with the account")
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }

  for (const [name, about] of [
    ["freeze", "stop all sending of an account (id, slug or name)"],
    ["unfreeze", "let a frozen account send again; its rates begin anew"],
  ] as const) {
    local(admin, `${name} <account>`, about, `admin ${name} acme --reason phishing`)
      .requiredOption("--reason <text>", "reason; the audit log keeps it")
      .action(lazily(async () => (await import("../local/admin"))[name]))
  }

  const plan = addCommand(admin, "plan", "manage the plans of accounts", "admin plan set acme pro")
  local(
    plan,
    "set <account> <plan>",
    "set the plan of an account: free, starter, pro, scale or enterprise",
    "admin plan set acme pro --limit emails_per_month=500000",
  )
    .option("--limit <name=number>", "limit that replaces the plan's own; may be repeated", several)
    .option("--no-limits", "remove the limits that --limit set")
    .action(lazily(async () => (await import("../local/admin")).setPlan))

  defineLists(admin)
}

function defineLists(admin: Command) {
  for (const [name, about] of [
    ["accounts", "list all accounts"],
    ["users", "list all people with a login"],
  ] as const) {
    local(admin, name, about, `admin ${name}`).action(
      lazily(async () => (await import("../local/admin"))[name]),
    )
  }
  const callback = "show the URL that gets the SES events of the instance's own mail"
  local(admin, "ses-callback", callback, "admin ses-callback").action(
    lazily(async () => (await import("../local/admin")).sesCallback),
  )
  const rotate = "replace the master key, also while the server works"
  local(admin, "rotate-master-key", rotate, "admin rotate-master-key")
    .option("--master-key <file>", "file with the new key, 32 bytes in base64 (default: a new one)")
    .option("--end-links", "end the links and addresses of mail that was sent")
    .action(lazily(async () => (await import("../local/master-key")).rotate))
  const lost = "list the secrets that are gone with a lost master key"
  local(admin, "lost-key", lost, "admin lost-key", "admin lost-key --accept")
    .option("--accept", "go on with the key at hand, or with a new one")
    .action(lazily(async () => (await import("../local/master-key")).lostKey))
  for (const [name, action, about] of [
    ["lock-user", "lockUser", "end all sessions of a person, and refuse new ones"],
    ["unlock-user", "unlockUser", "let a locked person sign in again"],
    ["grant-operator", "grant", "make a person an operator of the instance"],
    ["withdraw-operator", "withdraw", "take the operator role from a person"],
  ] as const) {
    local(admin, `${name} <email>`, about, `admin ${name} kim@example.test`).action(
      lazily(async () => (await import("../local/admin"))[action]),
    )
  }
}

const local = (...command: Parameters<typeof addCommand>): Command =>
  addCommand(...command)
    .option(...DATA_DIR)
    .option(...SET, several)
