import type { Command } from "commander"
import type { Action } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { key_fields } from "../lib/fields"
import { IDEMPOTENCY_KEY, LIMIT, optionWords, scopes } from "../lib/flags"
import { given } from "../lib/input"
import type { Output } from "../lib/output"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import type { Key } from "../lib/records"
import { examples, run, several } from "../lib/run"
import { type Column, fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, millis, momentAhead } from "../lib/time"

/** API keys of the project. */
export function define(program: Command): void {
  const keys = program
    .command("keys")
    .description("manage the API keys of the project")
    .addHelpText("after", examples("keys list"))

  keys
    .command("create")
    .description("create a key and print it once; --quiet prints only the key")
    .requiredOption("--name <name>", "name of the key")
    .option("--scope <scope>", "allowed scope, for example email:send; may be repeated", several)
    .option("--expires <when>", "expiry: a time, or a span from now (90d)")
    .option("--ip <address>", "allow only this IP address or network; may be repeated", several)
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      `\nScopes: ${scopes.join(" ")}\n` +
        examples("keys create --name ci --scope email:send --scope email:read --expires 90d"),
    )
    .action(run(create))

  keys
    .command("list")
    .description("list the keys, newest first")
    .option("--status <status>", "show only this status: active, revoked or expired")
    .option(...LIMIT)
    .addHelpText("after", examples("keys list --status active"))
    .action(run(list))

  keys
    .command("get <id>")
    .description("show one key, without its secret text")
    .addHelpText("after", examples("keys get 0199a1c2-0000-7000-8000-000000000001"))
    .action(run(get))

  keys
    .command("revoke <id>")
    .description("revoke a key; the next request with it is refused")
    .addHelpText("after", examples("keys revoke 0199a1c2-0000-7000-8000-000000000001 --yes"))
    .action(run(revoke))

  defineCare(keys)
}

const ID = "0199a1c2-0000-7000-8000-000000000001"

function defineCare(keys: Command) {
  keys
    .command("update <id>")
    .description("change the name or expiry of a key, or reduce its scopes")
    .option("--name <name>", "new name")
    .option("--scope <scope>", "scope to keep, the others are removed; may be repeated", several)
    .option("--expires <when>", "expiry: a time, a span from now (90d), or never")
    .addHelpText("after", examples(`keys update ${ID} --scope email:send --expires 90d`))
    .action(run(update))

  keys
    .command("rotate <id>")
    .description("create a key that replaces another one after some hours")
    .option("--overlap <hours>", "hours in which both keys work: 0 to 72 (default: 24)")
    .addHelpText("after", examples(`keys rotate ${ID} --overlap 2`))
    .action(run(rotate))

  keys
    .command("allowlist <id> [address...]")
    .description("set the IP addresses that may use a key; without any, show them")
    .option("--clear", "allow every address again")
    .addHelpText("after", examples(`keys allowlist ${ID} 192.0.2.7 2001:db8::/32`))
    .action(run(allowlist))

  keys
    .command("doctor")
    .description("find keys that are unused, may do everything or never expire; exit 8 if any")
    .addHelpText("after", examples("keys doctor"))
    .action(run(doctor))
}

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
