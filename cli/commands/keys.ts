import type { Components } from "../../src/client/components"
import { scopes } from "../../src/client/operations"
import type { Action } from "../lib/context"
import { exits } from "../lib/errors"
import type { Output } from "../lib/output"
import { listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { asks, own, row } from "../lib/resource"
import { ago, type Columns, coloured, idColumn, wide } from "../lib/table"
import { millis } from "../lib/time"

type ApiKey = Components["ApiKey"]

const columns: Columns<ApiKey> = {
  ID: idColumn("api_key"),
  NAME: wide(({ name }) => name),
  KEY: ({ prefix, last4 }) => `${prefix}…${last4}`,
  SCOPES: wide(({ scopes }) => scopes.join(" ")),
  STATUS: coloured(({ status }) => status, { active: "green" }, "red"),
  USED: ago(({ last_used_at }) => last_used_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

/** A key is shown this once, with --quiet too. */
const once = {
  done: ({ id }: ApiKey) => `created the key ${id}`,
  shown: ({ key }: { key: string }) => `\n  ${key}\n\nThe key cannot be shown again.`,
  brief: ({ key }: { key: string }) => key,
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

const keyValues = ({ prefix, last4 }: ApiKey) => ({
  key: `${prefix}…${last4}`,
  prefix: null,
  last4: null,
})

const allowlistRow = row("", "GET /v1/api-keys/{key_id}", {
  print: ({ output }, { data: { id, ip_addresses } }) =>
    output.record({ id, ip_addresses }, () => ip_addresses.join("\n") || "every address"),
})

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
    columns,
  }),
  row("get <id>", "GET /v1/api-keys/{key_id}", {
    about: "show one key, without its secret text",
    values: keyValues,
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
    values: keyValues,
  }),
  row("rotate <id>", "POST /v1/api-keys/{key_id}/rotate", {
    about: "create a key that replaces another one after some hours",
    example: "--overlap 2",
    flags: { overlap_hours: "hours in which both keys work: 0 to 72 (default: 24)" },
    ...once,
  }),
  row("allowlist <id> [address...]", "PUT /v1/api-keys/{key_id}/ip-whitelist", {
    about: "set the IP addresses that may use a key; without any, show them",
    example: ["192.0.2.7 2001:db8::/32", "--clear"],
    flags: { ip_addresses: false },
    options: [["--clear", "allow every address again"]],
    refuse: ({ clear }, { length }) =>
      clear && length > 1 ? "give either addresses or --clear" : undefined,
    instead: ({ clear }, { length }) => !clear && length === 1 && allowlistRow,
    confirm: async (context, [id], _, { clear }) =>
      clear
        ? await confirm(context, `Key ${id} will work from every address.`, "clear")
        : undefined,
    input: (_, [, ...ip_addresses]) => ({ ip_addresses }),
    values: keyValues,
  }),
  own("doctor", doctor, {
    about: "find keys that are unused, have all scopes or never expire; exit 8 if any",
  }),
]
