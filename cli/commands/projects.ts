import { SLUG } from "../lib/flags"
import { confirm } from "../lib/prompts"
import { asks, row } from "../lib/resource"
import { ago, idColumn, wide } from "../lib/table"

export const memberId = idColumn("member", ({ user_id }: { user_id: string }) => user_id)

export const isMember = ({ email, role }: { email: string; role: string }) =>
  `${email} has the role ${role}`

export const projectRows = [
  row("list", "GET /v1/projects", {
    about: "list the projects that you can see, newest first",
    columns: (context) => ({
      "": ({ id }) => (id === context.connection().project_id ? "*" : ""),
      ID: idColumn("project"),
      NAME: wide(({ name }) => name),
      SLUG: "slug",
      STATUS: ({ status, sandbox }) => (sandbox ? `${status}, sandbox` : status),
      AGE: ago(({ created_at }) => created_at),
    }),
  }),
  row("create", "POST /v1/projects", {
    about: "create a project",
    example: "--name Shop",
    flags: { name: "name of the project" },
    done: ({ name, id }) => `created the project ${name} ${id}`,
    next: ({ id }) => `projects use ${id}`,
  }),
  row("get <id>", "GET /v1/projects/{project_id}"),
  row("update <id>", "PATCH /v1/projects/{project_id}", {
    example: "--name Shop",
    flags: { name: "new name", slug: `new ${SLUG[1]}` },
  }),
  row("delete <id>", "DELETE /v1/projects/{project_id}", {
    about: "delete a project and stop its keys; it can be restored for 7 days",
    flags: { confirm: false },
    async confirm(context, [project_id = ""], client) {
      const { data } = await client.call("GET /v1/projects/{project_id}", {
        params: { project_id },
      })
      const what = `The keys of ${data.name} stop now. The project can be restored for 7 days.`
      await confirm(context, what, data.name)
      return { confirm: data.name }
    },
    done: ({ id }) => `deleted ${id}`,
    next: ({ id }) => `projects restore ${id}`,
  }),
  row("restore <id>", "POST /v1/projects/{project_id}/restore", {
    done: ({ name }) => `restored ${name}`,
  }),
  row("members <id>", "GET /v1/projects/{project_id}/members", {
    about: "list the members of a project and their roles, newest first",
    columns: {
      ID: memberId,
      EMAIL: wide(({ email }) => email),
      ROLE: ({ role, inherited }) => (inherited ? `${role} (account)` : role),
      SINCE: ago(({ added_at }) => added_at),
    },
  }),
  row("add-member <id>", "POST /v1/projects/{project_id}/members", {
    example: "--email kim@example.test --role viewer",
    flags: { email: "email address of the member", user_id: "user id of the member" },
    refuse: ({ email, user: id }) =>
      (email === undefined) === (id === undefined) ? "give --email or --user" : undefined,
    done: isMember,
  }),
  row("set-role <id> <user> <role>", "PATCH /v1/projects/{project_id}/members/{user_id}", {
    about: "set a member's role in the project: admin, developer or viewer",
    done: isMember,
  }),
  row("remove-member <id> <user>", "DELETE /v1/projects/{project_id}/members/{user_id}", {
    example: "--yes",
    confirm: asks((_, person) => `${person} will lose their role in this project.`, "remove"),
    done: ({ id }) => `removed ${id}`,
  }),
]
