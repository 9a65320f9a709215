import { Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { Deleted, deleted, nameText, slugText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Call, consoleRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
import type { Store } from "../store/store"
import * as projects from "./projects"
import { Project } from "./schemas"

const NewProject = t.Object({ name: nameText(), slug: t.Optional(slugText()) })
const ProjectPatch = t.Partial(t.Object({ name: nameText(), slug: slugText() }))
const Confirmation = t.Object({ confirm: t.String() })

const projectQuery = pageQuery({})

const ONE = "/v1/projects/{project_id}"

export function projectRoutes(parts: ListParts): AnyRoute[] {
  const { store } = parts
  return [
    ...atPath("/v1/projects", "", parts),
    ...atPath("/v1/accounts/me/projects", " of your account", parts),
    route({
      ...consoleRow("GET", ONE, "role:project_viewer|usage:read"),
      callers: ["console", "key"],
      of_deleted: "project",
      summary: "Show one project",
      description:
        'A deleted project has `status: "deleting"` for 7 days. An API key sees its own project.',
      response: Project,
      handle: async (call) => {
        const project = await projects.project.find(store.read, call.caller.account_id, ownId(call))
        return { data: projects.toResponse(project) }
      },
    }),
    route({
      ...consoleRow("PATCH", ONE, "role:project_admin"),
      summary: "Change the name or the slug of a project",
      description: "Fields that are absent stay as they are. A slug is unique within the account.",
      body: ProjectPatch,
      example: { name: "Website" },
      response: Project,
      errors: ["conflict"],
      handle: async ({ caller, params, body }) => {
        const { account_id } = caller
        const row = await store.tx((tx) =>
          projects.patch(tx, account_id, params.project_id, body, caller),
        )
        return { data: projects.toResponse(row) }
      },
    }),
    route({
      ...consoleRow("DELETE", ONE, "role:account_admin"),
      summary: "Delete a project",
      description:
        "Needs the name of the project in `confirm`. Its keys stop at once. Its data is deleted after 7 days. The last project of an account cannot be deleted.",
      body: Confirmation,
      example: { confirm: "Website" },
      response: Deleted,
      errors: ["conflict"],
      handle: (call) => remove(store, call),
    }),
    route({
      ...consoleRow("POST", `${ONE}/restore`, "role:account_admin"),
      summary: "Restore a deleted project",
      description: "Works within 7 days of the deletion, if the plan has room for the project.",
      response: Project,
      errors: ["conflict", "plan_limit_exceeded"],
      handle: async ({ caller, params }) => {
        const row = await store.tx((tx) =>
          projects.restore(tx, params.project_id, limitOf(caller), caller),
        )
        return { data: projects.toResponse(row) }
      },
    }),
  ]
}

/** The list and the way to make one answer at two paths. */
const atPath = (path: string, whose: string, { store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("POST", path, "role:account_admin", 201),
    summary: `Make a project${whose}`,
    description:
      "A project has its own emails, domains, webhooks and API keys. The plan limits how many there are.",
    body: NewProject,
    example: { name: "Website", slug: "website" },
    response: Project,
    errors: ["plan_limit_exceeded"],
    idempotent: true,
    handle: (call) => {
      const { caller, body } = call
      const wanted = { ...limitOf(caller), name: body.name, slug: body.slug }
      return answerOnce(store, call.claim, async (tx) =>
        projects.toResponse(await projects.create(tx, wanted, caller)),
      )
    },
  }),
  route({
    ...consoleRow("GET", path, "role:member"),
    summary: `List the projects${whose} that you can see`,
    description:
      "Owners and admins of the account see all projects. Other members see the projects in which they have a role.",
    query: projectQuery,
    response: Project,
    handle: async (call) => {
      const { account_id } = call.caller
      const only = await visibleTo(store, call.caller)
      const rows = projects.list(store.read, account_id, only)
      return listPage(call, cursors, rows, projects.toResponse)
    },
  }),
]

const limitOf = ({ account_id, plan, limits }: Caller) => ({
  account_id,
  plan,
  limit: limits.projects,
})

type OfProject<Body = unknown> = Call<Body, unknown, { project_id: string }>

/** A key reaches no project but its own, whichever is named. */
const ownId = ({ caller, params, project_id }: OfProject): string =>
  caller.kind === "key" && params.project_id !== project_id ? "" : params.project_id

async function visibleTo({ read }: Store, caller: Caller): Promise<string[] | undefined> {
  const { account_role, account_id, user_id } = caller
  if (account_role === "owner" || account_role === "admin") return undefined
  return projects.projectsOf(read, account_id, user_id ?? "")
}

async function remove(store: Store, { caller, params, body }: OfProject<{ confirm: string }>) {
  const id = params.project_id
  const { account_id } = caller
  const { name, status } = await projects.project.find(store.read, account_id, id)
  if (status === "active" && body.confirm !== name) {
    throw invalid("confirm", "invalid", "The value must be the name of the project.")
  }
  await store.tx((tx) => projects.remove(tx, account_id, id, caller))
  return deleted(id)
}
