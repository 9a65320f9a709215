import { confirm } from "./confirm"
import type { Action } from "./context"
import { deleted_fields } from "./fields"
import { limitOf, listUpTo } from "./paging"
import type { Deleted, SessionRecord } from "./records"
import { idColumn } from "./table"
import { age } from "./time"

const SESSIONS = "/v1/users/me/sessions"

export const list: Action<{ limit?: string }> = async (context, { limit }) => {
  const found = await listUpTo<SessionRecord>(context.client(), SESSIONS, {}, limitOf(limit))
  await context.output.list(found.rows, [
    { title: "", cell: ({ current }) => (current ? "*" : "") },
    idColumn("session"),
    { title: "ADDRESS", cell: ({ ip }) => ip ?? "" },
    {
      title: "PROGRAM",
      cell: ({ client_name, user_agent }) => client_name ?? user_agent ?? "",
      flexible: true,
    },
    { title: "USED", cell: ({ last_used_at }) => age(last_used_at) },
    { title: "SINCE", cell: ({ created_at }) => age(created_at) },
  ])
  if (found.more) await context.output.next(`belfry me sessions list --limit ${2 * limitOf(limit)}`)
  return undefined
}

export const revoke: Action<object> = async (context, _, id = "") => {
  context.output.promises(deleted_fields)
  await confirm(context, `Session ${id} will be signed out.`, "revoke")
  const { data } = await context.client().remove<Deleted>(`${SESSIONS}/${encodeURIComponent(id)}`)
  await context.output.record(data, () => `${context.paint.green("✓")} the session has ended`)
  return undefined
}
