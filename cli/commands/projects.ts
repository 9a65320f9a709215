import type { Command } from "commander"
import { examples, lazily } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const USER = "0199a1c2-0000-7000-8000-000000000002"

/** Projects: what keys, mail and everything else belong to. */
export function define(program: Command): void {
  const projects = program
    .command("projects")
    .description("projects of the account")
    .addHelpText("after", examples("projects list"))

  projects
    .command("list")
    .description("the projects you can see, newest first")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("projects list"))
    .action(lazily(async () => (await import("../projects")).list))

  projects
    .command("create")
    .description("make a project")
    .requiredOption("--name <name>", "what it is called")
    .option("--slug <slug>", "its name in addresses: a-z, 0-9 and hyphens")
    .addHelpText("after", examples("projects create --name Shop"))
    .action(lazily(async () => (await import("../projects")).create))

  projects
    .command("update <id>")
    .description("change name or slug")
    .option("--name <name>", "another name")
    .option("--slug <slug>", "another slug")
    .addHelpText("after", examples(`projects update ${ID} --name Shop`))
    .action(lazily(async () => (await import("../projects")).update))

  for (const [name, about] of [
    ["get", "one project"],
    ["delete", "delete a project: its keys stop at once; it can be restored for 7 days"],
    ["restore", "take back a deletion"],
    ["use", "work in this project from now on"],
  ] as const) {
    projects
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`projects ${name} ${ID}`))
      .action(
        lazily(async () => {
          const actions = await import("../projects")
          return name === "delete" ? actions.remove : actions[name]
        }),
      )
  }
  defineMembers(projects)
}

function defineMembers(projects: Command) {
  projects
    .command("members <id>")
    .description("the members of a project and their roles")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples(`projects members ${ID}`))
    .action(lazily(async () => (await import("../projects")).members))

  projects
    .command("add-member <id>")
    .description("give a member of the account a role in the project")
    .option("--email <address>", "who")
    .option("--user <id>", "who, by id")
    .requiredOption("--role <role>", "admin, developer or viewer")
    .addHelpText(
      "after",
      examples(`projects add-member ${ID} --email kim@example.test --role viewer`),
    )
    .action(lazily(async () => (await import("../projects")).addMember))

  projects
    .command("set-role <id> <user> <role>")
    .description("change somebody's role in the project: admin, developer or viewer")
    .addHelpText("after", examples(`projects set-role ${ID} ${USER} developer`))
    .action(lazily(async () => (await import("../projects")).setRole))

  projects
    .command("remove-member <id> <user>")
    .description("end somebody's role in the project")
    .addHelpText("after", examples(`projects remove-member ${ID} ${USER} --yes`))
    .action(lazily(async () => (await import("../projects")).removeMember))
}
