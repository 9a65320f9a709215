import { createHash } from "node:crypto"
import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import type { PlainOptions } from "../lib/field-flags"
import { isWholeId } from "../lib/id-kinds"
import { listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { asks, own, row } from "../lib/resource"
import { ago, type Columns, fields, wide } from "../lib/table"

type Consent = Components["Consent"]

const unsubscribeColumns: Columns<Components["Unsubscribe"]> = {
  CHANNEL: "channel",
  CATEGORY: ({ category }) => category ?? "all",
  REASON: wide(({ reason }) => reason ?? "", "first"),
  AGE: ago(({ created_at }) => created_at),
}

export const consentColumns: Columns<Consent> = {
  NUMBER: { cell: ({ number }) => String(number), spare: 2 },
  ACTION: "action",
  CHANNEL: "channel",
  FOR: ({ scope }) => (scope === null ? "all" : [scope.type, scope.key].filter(Boolean).join(" ")),
  SOURCE: "source",
  PROOF: { ...wide(({ proof }) => proof ?? "", "first"), spare: 1 },
  AGE: ago(({ created_at }) => created_at),
}

const choice = {
  category: "kind of the mail, which its recipient can unsubscribe from",
  reason: "a note for people, which becomes the proof of the consent record",
} as const

const what = ({ channel, category }: Readonly<Record<string, unknown>>): string =>
  category ? `${category} by ${channel}` : String(channel)

/** The external id; the id itself where the subscriber was deleted, and the server may still hold something. */
async function nameToErase(client: Client, name: string): Promise<string> {
  try {
    const params = { subscriber_id: name }
    const { data } = await client.call("GET /v1/subscribers/{subscriber_id}", { params })
    return data.external_id
  } catch (error) {
    if (isWholeId(name) && error instanceof Failure && error.exit === exits.not_found) return name
    throw error
  }
}

const CONSENTS = "GET /v1/subscribers/{subscriber_id}/consents"

const verifyChain: Action<PlainOptions> = async (context, { limit }, name = "") => {
  if (limit !== undefined) throw usage("--verify checks the whole chain: leave out --limit")
  const { client, output, paint } = context
  const api = client()
  const params = { subscriber_id: name }
  const { data: subscriber } = await api.call("GET /v1/subscribers/{subscriber_id}", { params })
  const { rows } = await listUpTo(api, CONSENTS, Number.POSITIVE_INFINITY, { params })
  const chain = (rows as Consent[]).sort((one, other) => one.number - other.number)
  const broken = brokenRecord(chain, subscriber.project_id) ?? null
  await output.record({ records: chain.length, whole: broken === null, broken }, () =>
    broken === null
      ? `${paint.green("✓")} the chain is whole: ${chain.length} ${chain.length === 1 ? "record" : "records"}`
      : `${paint.red("✗")} record ${broken} was changed, or a record before it is missing`,
  )
  return broken === null ? exits.done : exits.failed
}

/** The id of the first record that is not what was written, or that does not follow the one before. */
function brokenRecord(chain: Consent[], project_id: string): string | undefined {
  return chain.find((record, at) => {
    const prev_hash = chain[at - 1]?.hash ?? null
    const follows = record.number === at + 1 && record.prev_hash === prev_hash
    return !follows || record.hash !== hashOf(record, project_id)
  })?.id
}

/** As the server makes it: SHA-256 of the fields as a list of JSON, in hex. Of a subscriber there is no address. */
function hashOf(record: Consent, project_id: string): string {
  const { prev_hash, number, id, subscriber_id, channel, scope } = record
  const { action, source, proof, ip_hash, created_at } = record
  const address = null
  const said = [
    ...[prev_hash, number, id, project_id, subscriber_id, address, channel],
    ...[scope?.type ?? null, scope?.key ?? null, action, source, proof, ip_hash, created_at],
  ]
  return createHash("sha256").update(JSON.stringify(said)).digest("hex")
}

const exportOne: Action<object> = async ({ output, client }, _, name = "") => {
  const params = { subscriber_id: name }
  const stream = await client().stream("GET /v1/subscribers/{subscriber_id}/export", { params })
  for await (const bytes of stream) await output.raw(bytes)
  await output.raw("\n")
}

/** What subscribers ended and allowed, and what reaches through all data of one. */
export const subscriberConsentRows = [
  row("unsubscribes <subscriber>", "GET /v1/subscribers/{subscriber_id}/unsubscribes", {
    about: "list what a subscriber unsubscribed from",
    columns: unsubscribeColumns,
  }),
  row("unsubscribe <subscriber> <channel>", "POST /v1/subscribers/{subscriber_id}/unsubscribe", {
    about: "end a channel, or one category of it, for a subscriber; exit 5 if it has ended",
    example: ["--category newsletter", "--reason 'asked by telephone'"],
    note: "A channel is email, push, sms or in_app.",
    flags: choice,
    done: (_, [name], sent) => `${name} gets no more ${what(sent)}`,
  }),
  row("resubscribe <subscriber> <channel>", "POST /v1/subscribers/{subscriber_id}/resubscribe", {
    example: "--category newsletter",
    note: "It also removes the suppressions that unsubscribing made. A bounced address stays suppressed.",
    flags: choice,
    done: ({ removed }, [name], sent) =>
      removed > 0 ? `${name} gets ${what(sent)} again` : `${name} had not ended ${what(sent)}`,
  }),
  row("consent <subscriber> <channel>", "POST /v1/subscribers/{subscriber_id}/consents", {
    about: "add a consent record; it does not change what is sent",
    example: "--action granted --source import --proof 'form of 21 November'",
    flags: {
      category: choice.category,
      action: "granted or withdrawn",
      source: "api, page, one_click, sms or import",
      proof: "what shows that it was so",
    },
    done: ({ action, number }, [name]) => `record ${number} of ${name}: ${action}`,
  }),
  row("merge <subscriber> <from>", "POST /v1/subscribers/{subscriber_id}/merge", {
    about: "merge another subscriber into this one; the other one is removed",
    example: "--yes",
    note: "The command moves memberships, consents and messages. It keeps the stricter preference.",
    confirm: asks(
      (name, from) =>
        `This moves everything of ${from} to ${name}, and removes ${from}. It cannot be undone.`,
      "merge",
    ),
    done: ({ external_id }, [, from]) => `${from} is now ${external_id}`,
  }),
  row("erase <subscriber>", "POST /v1/subscribers/{subscriber_id}/erase", {
    about: "erase a subscriber with all messages, events and logs, and print the receipt",
    example: "--yes",
    note: "With the id of a deleted subscriber, it erases what Belfry still holds under that id.",
    flags: { confirm: false },
    confirm: async (context, [name = ""], client) => {
      const named = await nameToErase(client, name)
      const text = `This erases ${named} with all messages, events and logs.`
      await confirm(context, `${text} It cannot be undone.`, named)
      return { confirm: named }
    },
    brief: ({ receipt_id }) => receipt_id,
    done: (_, [name]) => `erased ${name}`,
    shown: ({ receipt_id, counts, remains }, paint) =>
      [
        fields([["receipt", receipt_id], ...Object.entries(counts)], paint),
        "",
        "What remains, and until when:",
        ...remains.map((one) => `- ${one.what}. ${one.until}`),
      ].join("\n"),
  }),
  row("consents <subscriber>", CONSENTS, {
    example: ["", "--verify"],
    options: [["--verify", "check the chain of hashes; exit 1 if a record was changed or removed"]],
    instead: ({ verify }) => verify === true && verifyChain,
    columns: consentColumns,
  }),
  own("export <subscriber>", exportOne, {
    about: "write everything that is held about a subscriber to stdout, as one JSON document",
    example: "> user-42.json",
  }),
]
