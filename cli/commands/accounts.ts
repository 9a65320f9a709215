import type { Command } from "commander"
import { examples, lazily } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Accounts: who pays, and who belongs together. */
export function define(program: Command): void {
  const accounts = program
    .command("accounts")
    .description("accounts you belong to")
    .addHelpText("after", examples("accounts list"))

  accounts
    .command("list")
    .description("your accounts, newest first")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("accounts list"))
    .action(lazily(async () => (await import("../accounts")).list))

  accounts
    .command("create")
    .description("make an account, and own it")
    .requiredOption("--name <name>", "what it is called")
    .option("--slug <slug>", "its name in addresses: a-z, 0-9 and hyphens")
    .addHelpText("after", examples('accounts create --name "Acme Ltd"'))
    .action(lazily(async () => (await import("../accounts")).create))

  accounts
    .command("update [id]")
    .description("change name and settings; without an id of the account worked in")
    .option("--name <name>", "another name")
    .option("--track-opens <on|off>", "count opened mails, unless a project says otherwise")
    .option("--track-clicks <on|off>", "count clicked links, unless a project says otherwise")
    .option("--require-mfa <on|off>", "let nobody in without a second factor")
    .addHelpText("after", examples("accounts update --require-mfa on"))
    .action(lazily(async () => (await import("../accounts")).update))

  for (const [name, about, arg] of [
    ["get", "one account; without an id the one worked in", "[id]"],
    ["delete", "delete an account; it can be restored for 7 days", "<id>"],
    ["restore", "take back a deletion", "<id>"],
    ["use", "work in this account from now on", "<id>"],
    ["transfer", "make another member the owner, and stay as an admin", "<user>"],
  ] as const) {
    accounts
      .command(`${name} ${arg}`)
      .description(about)
      .addHelpText("after", examples(`accounts ${name} ${ID}`))
      .action(
        lazily(async () => {
          const actions = await import("../accounts")
          return name === "delete" ? actions.remove : actions[name]
        }),
      )
  }
  for (const [name, about] of [
    ["plan", "the plan with its limits and features"],
    ["resources", "how many there are of everything, and how many there may be"],
  ] as const) {
    accounts
      .command(name)
      .description(about)
      .addHelpText("after", examples(`accounts ${name}`))
      .action(lazily(async () => (await import("../accounts"))[name]))
  }
  accounts
    .command("breakdown")
    .description("what each project used in a month")
    .option("--period <YYYY-MM>", "another month than this one")
    .addHelpText("after", examples("accounts breakdown --period 2026-11"))
    .action(lazily(async () => (await import("../accounts")).breakdown))
}
