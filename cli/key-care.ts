import { confirm } from "./confirm"
import type { Action } from "./context"
import { exits, usage } from "./failure"
import { key_fields } from "./fields"
import { expiry, shown } from "./keys"
import type { Output } from "./output"
import { listUpTo } from "./paging"
import type { Key } from "./records"
import { given } from "./switches"
import { idColumn } from "./table"
import { millis } from "./time"

const one = (id: string) => `/v1/api-keys/${encodeURIComponent(id)}`

const DAY = 86_400_000
const UNUSED_DAYS = 90
const NEVER_USED_DAYS = 7
const MOST_KEYS = 10_000

interface UpdateOptions {
  name?: string
  scope?: string[]
  expires?: string
}

export const update: Action<UpdateOptions> = async (context, { name, scope, expires }, id = "") => {
  const changes = given({
    name,
    scopes: scope?.flatMap((some) => some.split(",")),
    expires_at: expires === "never" ? null : expires && expiry(expires),
  })
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises(key_fields)
  const { data } = await context.client().patch<Key>(one(id), changes)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

interface RotateOptions {
  overlap?: string
}

export const rotate: Action<RotateOptions> = async (context, { overlap }, id = "") => {
  const hours = overlap === undefined ? undefined : Number(overlap)
  if (hours !== undefined && !Number.isInteger(hours)) {
    throw usage(`--overlap: "${overlap}" is not a whole number of hours`, "write 0 to 72")
  }
  const body = given({ overlap_hours: hours })
  const { output, paint } = context
  output.promises([...key_fields, "key"])
  const { data } = await context.client().post<Key>(`${one(id)}/rotate`, body)
  const made = `${paint.green("✓")} created the key ${data.id}`
  const human = () =>
    [made, "", `  ${data.key ?? ""}`, "", "The key cannot be shown again."].join("\n")
  await output.record(data, human, data.key) // with --quiet too: it cannot be had again
  return undefined
}

interface AllowlistOptions {
  clear?: boolean
}

/** Without addresses it tells which there are. */
export const allowlist: Action<AllowlistOptions> = async (context, options, id = "", ...more) => {
  if (options.clear && more.length > 0) throw usage("give either addresses or --clear")
  const client = context.client()
  if (!options.clear && more.length === 0) {
    const { data } = await client.get<Key>(one(id))
    const { ip_addresses } = data
    const text = ip_addresses.length > 0 ? ip_addresses.join("\n") : "every address"
    await context.output.record({ id: data.id, ip_addresses }, () => text)
    return undefined
  }
  context.output.promises(key_fields)
  if (options.clear) await confirm(context, `Key ${id} will work from every address.`, "clear")
  const { data } = await client.put<Key>(`${one(id)}/ip-whitelist`, { ip_addresses: more })
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

type Finding = { id: string; name: string; problem: string; advice: string }

/** What one would not want to find in an audit. Exit 8 when there is something. */
export const doctor: Action<object> = async (context) => {
  const query = { status: "active" }
  const { rows } = await listUpTo<Key>(context.client(), "/v1/api-keys", query, MOST_KEYS)
  const { output, paint } = context
  const findings = rows.flatMap((key) => problemsOf(key, output))
  if (findings.length === 0) {
    const text = `${paint.green("✓")} no problem in ${rows.length} keys`
    if (output.form === "human") await output.record({ findings }, () => text)
    else await output.list<Finding>([], [])
    return exits.done
  }
  await output.list(findings, [
    idColumn("api_key"),
    { title: "NAME", cell: ({ name }) => name, flexible: true },
    { title: "PROBLEM", cell: ({ problem }) => problem, paint: (text) => paint.yellow(text) },
    { title: "ADVICE", cell: ({ advice }) => advice, flexible: true },
  ])
  return exits.partly_failed
}

function problemsOf(key: Key, { again }: Output): Finding[] {
  const { id, name } = key
  const found = (problem: string, advice: string) => ({ id, name, problem, advice: again(advice) })
  const days = (iso: string) => (millis() - Date.parse(iso)) / DAY
  const idle = key.last_used_at
    ? days(key.last_used_at) > UNUSED_DAYS
    : days(key.created_at) > NEVER_USED_DAYS
  return [
    ...(idle ? [found("unused", `belfry keys revoke ${id}`)] : []),
    ...(key.scopes.includes("*")
      ? [found("may do everything", `belfry keys update ${id} --scope …`)]
      : []),
    ...(key.expires_at === null
      ? [found("never expires", `belfry keys update ${id} --expires 90d`)]
      : []),
  ]
}
