import { confirm } from "./confirm"
import type { Action } from "./context"
import { usage } from "./failure"
import { key_fields } from "./fields"
import { optionWords } from "./hint"
import { limitOf, listUpTo } from "./paging"
import type { Key } from "./records"
import { scopes } from "./scopes"
import { type Column, fields, idColumn } from "./table"
import type { Paint } from "./terminal"
import { age, momentAhead } from "./time"

interface CreateOptions {
  name: string
  scope?: string[]
  expires?: string
  ip?: string[]
  idempotencyKey?: string
}

export const create: Action<CreateOptions> = async (context, options) => {
  const { output, paint } = context
  // Nothing said is nothing granted.
  if (!options.scope) throw usage(`--scope is missing; the scopes are ${scopes.join(", ")}`)
  output.promises([...key_fields, "key"])
  const body = {
    name: options.name,
    scopes: options.scope.flatMap((scope) => scope.split(",")),
    ...(options.expires ? { expires_at: expiry(options.expires) } : {}),
    ...(options.ip ? { ip_addresses: options.ip } : {}),
  }
  const headers = options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : undefined
  const { data } = await context.client().post<Key>("/v1/api-keys", body, headers)
  const made = `${paint.green("✓")} created the key ${data.id}`
  const human = () =>
    [made, "", `  ${data.key ?? ""}`, "", "The key cannot be shown again."].join("\n")
  await output.record(data, human, data.key) // with --quiet too: it cannot be had again
  await output.next(`belfry keys get ${data.id}`)
  return undefined
}

export const expiry = (text: string): string => momentAhead(text, "--expires")

const columns: Column<Key>[] = [
  idColumn("api_key"),
  { title: "NAME", cell: ({ name }) => name, flexible: true },
  { title: "KEY", cell: ({ prefix, last4 }) => `${prefix}…${last4}` },
  { title: "SCOPES", cell: ({ scopes }) => scopes.join(" "), flexible: true },
  { title: "STATUS", cell: ({ status }) => status, paint: paintStatus },
  { title: "USED", cell: ({ last_used_at }) => age(last_used_at) || "never" },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

function paintStatus(text: string, { status }: Key, paint: Paint): string {
  return status === "active" ? paint.green(text) : paint.red(text)
}

interface ListOptions {
  status?: string
  limit?: string
}

export const list: Action<ListOptions> = async (context, { status, limit }) => {
  const query = { status }
  const found = await listUpTo<Key>(context.client(), "/v1/api-keys", query, limitOf(limit))
  await context.output.list(found.rows, columns)
  if (found.more) {
    const words = optionWords({ status, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry keys list${words}`)
  }
  return undefined
}

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Key>(`/v1/api-keys/${encodeURIComponent(id)}`)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

export function shown(key: Key, paint: Paint): string {
  return fields(
    [
      ["id", key.id],
      ["name", key.name],
      ["key", `${key.prefix}…${key.last4}`],
      ["status", key.status],
      ["scopes", key.scopes.join(" ")],
      ["only from", key.ip_addresses?.join(" ")],
      ["expires", key.expires_at],
      ["last used", key.last_used_at],
      ["created", key.created_at],
    ],
    paint,
  )
}

export const revoke: Action<object> = async (context, _, id = "") => {
  const what = `Key ${id} will stop working at the next request. This cannot be undone.`
  context.output.promises([...key_fields, "deleted"])
  await confirm(context, what, "revoke")
  const { data } = await context.client().remove<Key>(`/v1/api-keys/${encodeURIComponent(id)}`)
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} revoked ${data.name} (${data.id})`)
  return undefined
}
