import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { plainCell, recordsIn } from "../lib/csv"
import { textIn } from "../lib/decoded-text"
import { exits, Failure, usage, wasThere } from "../lib/errors"
import { IMPORT_OPTIONS, patiently } from "../lib/file-import"
import { SINCE } from "../lib/flags"
import { contactOf, given } from "../lib/input"
import { recordMissing } from "../lib/missing"
import { ALL, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { ID, own, row } from "../lib/resource"
import { later } from "../lib/run"
import { ago, type Columns, idColumn, recordText, wide } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { moment } from "../lib/time"

type Suppression = Components["Suppression"]

/** For what, where it is not for everything. */
const scopeText = ({ scope: { type, key } }: Pick<Suppression, "scope">): string =>
  type === "project" ? "everything" : [type, key].filter(Boolean).join(" ")

const columns: Columns<Suppression> = {
  ID: idColumn("suppression"),
  ADDRESS: wide(({ address }) => address, "last"),
  REASON: "reason",
  ORIGIN: "origin",
  FOR: wide(scopeText),
  ENDS: ago(({ expires_at }) => expires_at, "never"),
  AGE: ago(({ created_at }) => created_at),
  DIAGNOSTIC: { cell: ({ diagnostic }) => diagnostic ?? "", flexible: "first", spare: 2 },
  NOTE: { cell: ({ note }) => note ?? "", flexible: "first", spare: 1 },
}

/** An id stays; an address leads to the suppression that counts for most of its mail. */
async function idOf(client: Client, named: string): Promise<string> {
  if (!isAddress(named)) return named
  const { data } = await client.call("GET /v1/suppressions", { query: { address: named } })
  const whole = data.find(({ scope }) => scope.type === "project") ?? data[0]
  if (whole) return whole.id
  throw new Failure(exits.not_found, "not_found", `${named} is not suppressed.`)
}

const isAddress = (text: string) => text.includes("@") || text.startsWith("+")

const MOST_AT_ONCE = 1000

/** Exit 3 where one of them was not suppressed. */
const remove: Action<object> = async (context, _, ...named) => {
  const emails = named.filter((one) => one.includes("@"))
  const others = named.filter((one) => !one.includes("@"))
  const what =
    named.length === 1 ? `the suppression of ${named[0]}` : `${named.length} suppressions`
  await confirm(context, `This removes ${what}. Mail is sent there again.`, "remove")
  const client = context.client()
  let removed = 0
  const not_found: string[] = []
  for (let at = 0; at < emails.length; at += MOST_AT_ONCE) {
    const body = { emails: emails.slice(at, at + MOST_AT_ONCE) }
    const { data } = await client.call("POST /v1/suppressions/bulk-remove", { body })
    removed += data.removed
    not_found.push(...data.not_found)
  }
  for (const one of others) {
    if (await wasThere(removeOne(client, one))) removed += 1
    else not_found.push(one)
  }
  const missing = (one: string) => `${one} was not suppressed`
  return await recordMissing(context, { removed, not_found }, `removed ${removed}`, missing)
}

async function removeOne(client: Client, named: string) {
  const suppression_id = await idOf(client, named)
  await client.call("DELETE /v1/suppressions/{suppression_id}", { params: { suppression_id } })
}

/** As it comes: a list of any length needs little memory. */
const exportAll: Action<object> = async ({ flags, output, client }: Context) => {
  if (flags.json !== undefined) throw usage("export writes CSV, or JSON lines with --ndjson")
  const stream = await client().stream("GET /v1/suppressions/export")
  if (!flags.ndjson && flags.output !== "ndjson") {
    for await (const bytes of stream) await output.raw(bytes)
    return
  }
  let names: string[] | undefined
  for await (const { cells } of recordsIn(textIn(stream, "the answer"))) {
    if (names) await output.raw(`${JSON.stringify(recordOf(names, cells))}\n`)
    else names = cells
  }
}

function recordOf(names: string[], cells: string[]) {
  const all = Object.fromEntries(
    names.map((name, at) => [name, plainCell(cells[at] ?? "") || null]),
  )
  const { scope_type: type, scope_key: key, ...rest } = all
  const { id, channel, address, reason, origin, ...more } = rest
  return { id, channel, address, reason, origin, scope: { type, key }, ...more }
}

interface LiftOptions {
  diagnostic: string
  since?: string
}

const SAMPLES = 5

/**
 * Removes the suppressions of bounces whose reply has a text in it. Each goes by its own id: another suppression of
 * the same address, such as one of a category, stays.
 */
const lift: Action<LiftOptions> = async (context, { diagnostic, since }) => {
  const { output, paint, flags } = context
  output.promises(["found", "lifted", "samples"])
  const created_after = since === undefined ? undefined : moment(since, "--since")
  const query = given({ reason: "bounce", origin: "event", diagnostic, created_after })
  const client = context.client()
  const { rows } = await listUpTo(client, "GET /v1/suppressions", ALL, { query })
  const samples = rows.slice(0, SAMPLES).map(({ address, diagnostic: said }) => ({ address, said }))
  const counted = rows.length === 1 ? "1 suppression" : `${rows.length} suppressions`
  const shown = samples.map(({ address, said }) => `  ${cleanLine(`${address}   ${said}`)}`)
  if (flags.dryRun || rows.length === 0) {
    const text = [`${counted} with "${diagnostic}" in the reply`, ...shown].join("\n")
    await output.record({ found: rows.length, lifted: 0, samples }, () => text)
    return
  }
  if (!flags.yes) await output.note(shown.join("\n"))
  const what = `This removes ${counted}. Mail is sent there again.`
  await confirm(context, what, String(rows.length))
  let lifted = 0
  for (const { id } of rows) {
    const input = { params: { suppression_id: id } }
    const remove = () => client.call("DELETE /v1/suppressions/{suppression_id}", input)
    if (await wasThere(patiently(context, remove))) lifted += 1 // else somebody removed it meanwhile
    output.passing(`${lifted} of ${rows.length}`)
  }
  output.passing("")
  await output.record({ found: rows.length, lifted, samples }, () => {
    return `${paint.green("✓")} lifted ${lifted} of ${counted}`
  })
}

export const suppressionRows = [
  row("list", "GET /v1/suppressions", {
    example: [
      "--reason bounce",
      "--diagnostic 'too many recipients'",
      "--origin import --limit 100",
    ],
    columns,
  }),
  row("add <address>", "POST /v1/suppressions", {
    about: "suppress an email address or phone number: nothing is sent to it any more",
    word: "ann@acme.test",
    example: ["", "--note 'asked by telephone' --expires 90d"],
    flags: {
      email: false,
      phone: false,
      reason: "bounce, complaint, unsubscribe or manual (default: manual)",
      note: "a note for people",
      expires_at: "when the suppression ends: a time, or a span from now (default: never)",
    },
    input: (_, [address = ""]) => contactOf(address),
    done: ({ address, id }) => `${address} is suppressed   ${id}`,
  }),
  row("get <id>", "GET /v1/suppressions/{suppression_id}", {
    about: "show one suppression, by its id or by its address",
    id: idOf,
  }),
  row("check <address>", "GET /v1/suppressions/check", {
    about: "say whether an address gets mail; exit 1 if it is suppressed",
    word: "ann@acme.test",
    example: ["", "--category news"],
    flags: {
      email: false,
      phone: false,
      category: "kind of the mail, which its recipient can unsubscribe from",
    },
    input: (_, [address = ""]) => contactOf(address),
    shown: ({ address, suppression }, paint) =>
      suppression
        ? `${paint.red("✗")} ${address} is suppressed\n${recordText(suppression, paint)}`
        : `${paint.green("✓")} ${address} is not suppressed`,
    brief: ({ suppression }) => suppression?.id ?? "",
    exit: ({ suppressed }) => (suppressed ? exits.failed : exits.done),
  }),
  own("rm <address...>", remove, {
    about: "remove the suppressions of addresses, or single ones by their ids",
    word: ["ann@acme.test", ID],
    example: ["ben@acme.test", "--yes"],
  }),
  own("lift", lift, {
    about: "remove all suppressions that one misread refusal caused; --dry-run only shows them",
    example: ["--diagnostic 'too many recipients' --dry-run", "--diagnostic OFR_506 --since 7d"],
    options: [
      ["--diagnostic <text>", "a part of the reply that caused them, in any case", "required"],
      SINCE,
    ],
  }),
  own("export", exportAll, {
    about: "write all suppressions to stdout as CSV, or with --ndjson as JSON lines",
    example: ["> suppressions.csv", "--ndjson > suppressions.ndjson"],
  }),
  own(
    "import <file>",
    later(async () => (await import("./suppressions-import")).importFile),
    {
      about: "suppress the addresses of a CSV or JSON file, or of a file with one address a line",
      word: ["unsubscribed.csv", "-"],
      example: ["--reason unsubscribe", "< addresses.txt"],
      options: [
        [
          "--reason <reason>",
          "reason where the file gives none: bounce, complaint, unsubscribe or manual (the default)",
        ],
        ["--note <note>", "note where the file gives none; before what another service tells"],
        ["--map <column=field>", "field that a column fills; may be repeated", "several"],
        ...IMPORT_OPTIONS,
      ],
    },
  ),
]
