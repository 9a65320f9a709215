import { choose } from "./accounts"
import { confirm } from "./confirm"
import type { Action } from "./context"
import { usage } from "./failure"
import { deleted_fields, project_fields, project_member_fields } from "./fields"
import { limitOf, listUpTo } from "./paging"
import type { Deleted, Member, Project } from "./records"
import { given } from "./switches"
import { type Column, fields, idColumn } from "./table"
import { age } from "./time"

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
