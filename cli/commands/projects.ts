import type { Command } from "commander"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { deleted_fields, project_fields, project_member_fields } from "../lib/fields"
import { LIMIT, SLUG } from "../lib/flags"
import { given } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import type { Deleted, Member, Project } from "../lib/records"
import { examples, run } from "../lib/run"
import { type Column, fields, idColumn } from "../lib/table"
import { age } from "../lib/time"
import { choose } from "./accounts"

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
    .action(run(list))

  projects
    .command("create")
    .description("create a project")
    .requiredOption("--name <name>", "name of the project")
    .option(...SLUG)
    .addHelpText("after", examples("projects create --name Shop"))
    .action(run(create))

  projects
    .command("update <id>")
    .description("change the name or the slug of a project")
    .option("--name <name>", "new name")
    .option("--slug <slug>", "new short name for URLs: a-z, 0-9 and hyphens")
    .addHelpText("after", examples(`projects update ${ID} --name Shop`))
    .action(run(update))

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
      .action(run({ get, delete: remove, restore, use }[name]))
  }
  defineMembers(projects)
}

function defineMembers(projects: Command) {
  projects
    .command("members <id>")
    .description("list the members of a project and their roles")
    .option(...LIMIT)
    .addHelpText("after", examples(`projects members ${ID}`))
    .action(run(members))

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
    .action(run(addMember))

  projects
    .command("set-role <id> <user> <role>")
    .description("set a member's role in the project: admin, developer or viewer")
    .addHelpText("after", examples(`projects set-role ${ID} ${USER} developer`))
    .action(run(setRole))

  projects
    .command("remove-member <id> <user>")
    .description("remove a member from the project")
    .addHelpText("after", examples(`projects remove-member ${ID} ${USER} --yes`))
    .action(run(removeMember))
}

const ALL = "/v1/projects"
const one = (id: string) => `${ALL}/${encodeURIComponent(id)}`
const member = (id: string, user: string) => `${one(id)}/members/${encodeURIComponent(user)}`

interface ListOptions {
  limit?: string
}

export const list: Action<ListOptions> = async (context, { limit }) => {
  const found = await listUpTo<Project>(context.client(), ALL, {}, limitOf(limit))
  const { project_id } = context.connection()
  const columns: Column<Project>[] = [
    { title: "", cell: ({ id }) => (id === project_id ? "*" : "") },
    idColumn("project"),
    { title: "NAME", cell: ({ name }) => name, flexible: true },
    { title: "SLUG", cell: ({ slug }) => slug },
    { title: "STATUS", cell: ({ status, sandbox }) => (sandbox ? `${status}, sandbox` : status) },
    { title: "AGE", cell: ({ created_at }) => age(created_at) },
  ]
  await context.output.list(found.rows, columns)
  if (found.more) await context.output.next(`belfry projects list --limit ${2 * limitOf(limit)}`)
  return undefined
}

interface Names {
  name?: string
  slug?: string
}

export const create: Action<Names> = async (context, { name, slug }) => {
  context.output.promises(project_fields)
  const { data } = await context.client().post<Project>(ALL, given({ name, slug }))
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} created the project ${data.name} ${data.id}`)
  await output.next(`belfry projects use ${data.id}`)
  return undefined
}

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Project>(one(id))
  await context.output.record(data, () => fields(Object.entries(data), context.paint))
  return undefined
}

export const update: Action<Names> = async (context, { name, slug }, id = "") => {
  const changes = given({ name, slug })
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises(project_fields)
  const { data } = await context.client().patch<Project>(one(id), changes)
  await context.output.record(data, () => fields(Object.entries(data), context.paint))
  return undefined
}

export const remove: Action<object> = async (context, _, id = "") => {
  context.output.promises(deleted_fields)
  const client = context.client()
  const { data: project } = await client.get<Project>(one(id))
  const what = `The keys of ${project.name} stop now. The project can be restored for 7 days.`
  await confirm(context, what, project.name)
  const { data } = await client.remove<Deleted>(one(id), {}, { confirm: project.name })
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} deleted ${project.name} (${data.id})`)
  await output.next(`belfry projects restore ${data.id}`)
  return undefined
}

export const restore: Action<object> = async (context, _, id = "") => {
  context.output.promises(project_fields)
  const { data } = await context.client().post<Project>(`${one(id)}/restore`)
  await context.output.record(data, () => `${context.paint.green("✓")} restored ${data.name}`)
  return undefined
}

/** Later commands work there. */
export const use: Action<object> = async (context, _, id = "") => {
  context.output.promises(project_fields)
  const { data } = await context.client().get<Project & { account_id: string }>(one(id))
  choose(context, { account_id: data.account_id, project_id: data.id })
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} later commands use the project ${data.name}`,
  )
  await context.output.next("belfry keys list")
  return undefined
}

export const members: Action<ListOptions> = async (context, { limit }, id = "") => {
  const path = `${one(id)}/members`
  const found = await listUpTo<Member>(context.client(), path, {}, limitOf(limit))
  await context.output.list(found.rows, [
    idColumn("member", ({ user_id }: Member) => user_id),
    { title: "EMAIL", cell: ({ email }) => email, flexible: true },
    { title: "ROLE", cell: ({ role, inherited }) => (inherited ? `${role} (account)` : role) },
    { title: "SINCE", cell: ({ added_at }) => age(added_at) },
  ])
  if (found.more) {
    await context.output.next(`belfry projects members ${id} --limit ${2 * limitOf(limit)}`)
  }
  return undefined
}

interface AddOptions {
  email?: string
  user?: string
  role: string
}

export const addMember: Action<AddOptions> = async (context, { email, user, role }, id = "") => {
  if ((email === undefined) === (user === undefined)) throw usage("give --email or --user")
  context.output.promises(project_member_fields)
  const body = given({ email, user_id: user, role })
  const { data } = await context.client().post<Member>(`${one(id)}/members`, body)
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} ${data.email} has the role ${data.role}`,
  )
  return undefined
}

export const setRole: Action<object> = async (context, _, id = "", user = "", role = "") => {
  context.output.promises(project_member_fields)
  const { data } = await context.client().patch<Member>(member(id, user), { role })
  await context.output.record(
    data,
    () => `${context.paint.green("✓")} ${data.email} has the role ${data.role}`,
  )
  return undefined
}

export const removeMember: Action<object> = async (context, _, id = "", user = "") => {
  context.output.promises(deleted_fields)
  await confirm(context, `${user} will lose their role in this project.`, "remove")
  const { data } = await context.client().remove<Deleted>(member(id, user))
  await context.output.record(data, () => `${context.paint.green("✓")} removed ${data.id}`)
  return undefined
}
