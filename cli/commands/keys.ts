import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { scopes } from "../../src/client/operations"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { exits, usage } from "../lib/errors"
import type { Output } from "../lib/output"
import { listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { asks, groupOf, ID, row } from "../lib/resource"
import { examples, run } from "../lib/run"
import { ago, type Columns, fields, idColumn, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { millis } from "../lib/time"

type ApiKey = Components["ApiKey"]

const columns: Columns<ApiKey> = {
  ID: idColumn("api_key"),
  NAME: wide(({ name }) => name),
  KEY: ({ prefix, last4 }) => `${prefix}…${last4}`,
  SCOPES: wide(({ scopes }) => scopes.join(" ")),
  STATUS: {
    cell: ({ status }) => status,
    paint: (text, { status }, paint) => (status === "active" ? paint.green(text) : paint.red(text)),
  },
  USED: ago(({ last_used_at }) => last_used_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

/** A key is shown this once, with --quiet too. */
const once = {
  done: ({ id }: ApiKey) => `created the key ${id}`,
  shown: ({ key }: { key: string }) => `\n  ${key}\n\nThe key cannot be shown again.`,
  brief: ({ key }: { key: string }) => key,
}

/** API keys of the project. */
export const keyRows = [
  row("create", "POST /v1/api-keys", {
    about: "create a key and print it once; --quiet prints only the key",
    example: "--name ci --scope email:send --scope email:read --expires 90d",
    flags: {
      name: "name of the key",
      scopes: "allowed scope, for example email:send; may be repeated",
      expires_at: "expiry: a time, or a span from now (90d)",
      ip_addresses: "allow only this IP address or network; may be repeated",
      mode: false,
      permission: false,
      domain_id: false,
    },
    note: `Scopes: ${scopes.join(" ")}`,
    // Nothing said is nothing granted.
    refuse: ({ scope }) =>
      scope ? undefined : `--scope is missing; the scopes are ${scopes.join(", ")}`,
    ...once,
    next: ({ id }) => `keys get ${id}`,
  }),
  row("list", "GET /v1/api-keys", {
    example: "--status active",
    columns: columns,
  }),
  row("get <id>", "GET /v1/api-keys/{key_id}", {
    about: "show one key, without its secret text",
    shown,
  }),
  row("revoke <id>", "DELETE /v1/api-keys/{key_id}", {
    about: "revoke a key; the next request with it is refused",
    example: "--yes",
    confirm: asks(
      (id) => `Key ${id} will stop working at the next request. This cannot be undone.`,
      "revoke",
    ),
    done: ({ name, id }) => `revoked ${name} (${id})`,
  }),
  row("update <id>", "PATCH /v1/api-keys/{key_id}", {
    about: "change the name or expiry of a key, or reduce its scopes",
    example: "--scope email:send --expires 90d",
    flags: {
      name: "new name",
      scopes: "scope to keep, the others are removed; may be repeated",
      expires_at: "expiry: a time, a span from now (90d), or never",
    },
    shown,
  }),
  row("rotate <id>", "POST /v1/api-keys/{key_id}/rotate", {
    about: "create a key that replaces another one after some hours",
    example: "--overlap 2",
    flags: { overlap_hours: "hours in which both keys work: 0 to 72 (default: 24)" },
    ...once,
  }),
]

function shown(key: ApiKey, paint: Paint): string {
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

export function define(program: Command): void {
  const keys = groupOf(program, "keys")
  keys
    .command("allowlist <id> [address...]")
    .description("set the IP addresses that may use a key; without any, show them")
    .option("--clear", "allow every address again")
    .addHelpText("after", examples(`keys allowlist ${ID} 192.0.2.7 2001:db8::/32`))
    .action(run(allowlist))

  keys
    .command("doctor")
    .description("find keys that are unused, have all scopes or never expire; exit 8 if any")
    .addHelpText("after", examples("keys doctor"))
    .action(run(doctor))
}

/** Without addresses it tells which there are. */
const allowlist: Action<{ clear?: boolean }> = async (context, options, id = "", ...more) => {
  if (options.clear && more.length > 0) throw usage("give either addresses or --clear")
  const client = context.client()
  const params = { key_id: id }
  if (!options.clear && more.length === 0) {
    const { data } = await client.call("GET /v1/api-keys/{key_id}", { params })
    const { ip_addresses } = data
    const text = ip_addresses.length > 0 ? ip_addresses.join("\n") : "every address"
    await context.output.record({ id: data.id, ip_addresses }, () => text)
    return undefined
  }
  context.output.promises(fieldsOf("PUT /v1/api-keys/{key_id}/ip-whitelist"))
  if (options.clear) await confirm(context, `Key ${id} will work from every address.`, "clear")
  const { data } = await client.call("PUT /v1/api-keys/{key_id}/ip-whitelist", {
    params,
    body: { ip_addresses: more },
  })
  await context.output.record(data, () => shown(data, context.paint))
}

const DAY = 86_400_000
const UNUSED_DAYS = 90
const NEVER_USED_DAYS = 7
const MOST_KEYS = 10_000

type KeyFinding = { id: string; name: string; problem: string; advice: string }

/** Findings of an audit. Exit 8 when there is one. */
const doctor: Action<object> = async (context) => {
  const query = { status: "active" }
  const { rows } = await listUpTo(context.client(), "GET /v1/api-keys", MOST_KEYS, { query })
  const { output, paint } = context
  const findings = rows.flatMap((key) => problemsOf(key, output))
  if (findings.length === 0) {
    const text = `${paint.green("✓")} no problem in ${rows.length} keys`
    if (output.form === "human") await output.record({ findings }, () => text)
    else await output.list<KeyFinding>([], {})
    return exits.done
  }
  await output.list(findings, {
    ID: idColumn("api_key"),
    NAME: wide(({ name }) => name),
    PROBLEM: { cell: ({ problem }) => problem, paint: (text) => paint.yellow(text) },
    ADVICE: wide(({ advice }) => advice),
  })
  return exits.partly_failed
}

function problemsOf(key: ApiKey, { again }: Output): KeyFinding[] {
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
