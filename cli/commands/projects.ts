import type { Command } from "commander"
import { examples, lazily } from "../action"
import { LIMIT, SLUG } from "../shared-flags"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const USER = "0199a1c2-0000-7000-8000-000000000002"

/** Projects: what keys, mail and everything else belong to. */
export function define(program: Command): void {
  const projects = program
    .command("projects")
    .description("manage the projects of the account")
    .addHelpText("after", examples("projects list"))

  projects
    .command("list")
    .description("list the projects that you can see, newest first")
    .option(...LIMIT)
    .addHelpText("after", examples("projects list"))
    .action(lazily(async () => (await import("../projects")).list))

  projects
    .command("create")
    .description("create a project")
    .requiredOption("--name <name>", "name of the project")
    .option(...SLUG)
    .addHelpText("after", examples("projects create --name Shop"))
    .action(lazily(async () => (await import("../projects")).create))

  projects
    .command("update <id>")
    .description("change the name or the slug of a project")
    .option("--name <name>", "new name")
    .option("--slug <slug>", "new short name for URLs: a-z, 0-9 and hyphens")
    .addHelpText("after", examples(`projects update ${ID} --name Shop`))
    .action(lazily(async () => (await import("../projects")).update))

  for (const [name, about] of [
    ["get", "show one project"],
    ["delete", "delete a project and stop its keys; it can be restored for 7 days"],
    ["restore", "restore a deleted project"],
    ["use", "choose the project that later commands use"],
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
    .description("list the members of a project and their roles")
    .option(...LIMIT)
    .addHelpText("after", examples(`projects members ${ID}`))
    .action(lazily(async () => (await import("../projects")).members))

  projects
    .command("add-member <id>")
    .description("give a member of the account a role in the project")
    .option("--email <address>", "email address of the member")
    .option("--user <id>", "user id of the member")
    .requiredOption("--role <role>", "role: admin, developer or viewer")
    .addHelpText(
      "after",
      examples(`projects add-member ${ID} --email kim@example.test --role viewer`),
    )
    .action(lazily(async () => (await import("../projects")).addMember))

  projects
    .command("set-role <id> <user> <role>")
    .description("set a member's role in the project: admin, developer or viewer")
    .addHelpText("after", examples(`projects set-role ${ID} ${USER} developer`))
    .action(lazily(async () => (await import("../projects")).setRole))

  projects
    .command("remove-member <id> <user>")
    .description("remove a member from the project")
    .addHelpText("after", examples(`projects remove-member ${ID} ${USER} --yes`))
    .action(lazily(async () => (await import("../projects")).removeMember))
}
