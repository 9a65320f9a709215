import type { Command } from "commander"
import { examples, lazily } from "../action"
import { LIMIT, PERIOD, SLUG } from "../shared-flags"

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
    .action(lazily(async () => (await import("../accounts")).list))

  accounts
    .command("create")
    .description("create an account that you own")
    .requiredOption("--name <name>", "name of the account")
    .option(...SLUG)
    .addHelpText("after", examples('accounts create --name "Acme Ltd"'))
    .action(lazily(async () => (await import("../accounts")).create))

  accounts
    .command("update [id]")
    .description("change name and settings of an account (default: the current one)")
    .option("--name <name>", "new name")
    .option("--track-opens <on|off>", "count opened mail, unless a project says otherwise")
    .option("--track-clicks <on|off>", "count clicked links, unless a project says otherwise")
    .option("--require-mfa <on|off>", "require a second factor from every member")
    .addHelpText("after", examples("accounts update --require-mfa on"))
    .action(lazily(async () => (await import("../accounts")).update))

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
      .action(
        lazily(async () => {
          const actions = await import("../accounts")
          return name === "delete" ? actions.remove : actions[name]
        }),
      )
  }
  for (const [name, about] of [
    ["plan", "show the plan with its limits and features"],
    ["resources", "show the number of each resource, with its limit"],
  ] as const) {
    accounts
      .command(name)
      .description(about)
      .addHelpText("after", examples(`accounts ${name}`))
      .action(lazily(async () => (await import("../accounts"))[name]))
  }
  accounts
    .command("breakdown")
    .description("show the usage of each project in a month")
    .option(...PERIOD)
    .addHelpText("after", examples("accounts breakdown --period 2026-11"))
    .action(lazily(async () => (await import("../accounts")).breakdown))
}
