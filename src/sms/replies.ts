import { and, desc, eq } from "drizzle-orm"
import { type NumberChoice, planNumberChoices } from "../consents/number-choice"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { now, secondsFromNow } from "../core/time"
import { projects } from "../identity/tables"
import { isPhone } from "../lib/phone"
import { smsSegments } from "../lib/sms-segments"
import * as pipeline from "../messages/pipeline"
import { messages, type NewMessage } from "../messages/tables"
import { isFirst, type ProviderFeedback } from "../providers/callbacks"
import type { ReceivedText } from "../providers/provider"
import type { Reader, Tx } from "../store/store"
import { suppress, unsuppress } from "../suppressions/suppressions"

const CHANNEL = "sms"

/** Characters that are kept; a text of several parts has at most some thousand. */
const MOST_TEXT = 10_000

/** Characters of a number or a name. */
const MOST_PARTY = 100

type Keyword = NonNullable<ReceivedText["keyword"]>

/** A keyword is the whole text (contract 41). */
const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT"].map(
    (word) => [word, "stop"] as const,
  ),
  ...["START", "UNSTOP"].map((word) => [word, "start"] as const),
  ["HELP", "help"] as const,
])

export const keywordOf = ({ keyword, text }: ReceivedText): Keyword | undefined =>
  keyword ?? KEYWORDS.get(text.trim().toUpperCase())

/**
 * Stores a text that came in, with its event, and does what its keyword asks for. One that came before changes
 * nothing.
 */
export async function receiveText(
  tx: Tx,
  told: ProviderFeedback,
  received: ReceivedText,
): Promise<void> {
  const { config_id, project_id, provider } = told
  const owner = project_id === null ? undefined : await accountOf(tx, project_id)
  if (project_id === null || !owner) {
    log.debug("a text came in for no project", { config_id })
    return
  }
  const { account_id } = owner
  const { provider_message_id } = received
  const [message_id, created_at] = [newId(), now()]
  if (provider_message_id !== null) {
    const receipt = { config_id, project_id, provider_message_id, message_id, created_at }
    if (!(await isFirst(tx, receipt))) return
  }
  const [from, to, body] = [
    kept(received.from, MOST_PARTY),
    kept(received.to, MOST_PARTY),
    kept(received.text, MOST_TEXT),
  ]
  const in_reply_to = await answered(tx, project_id, from)
  const row = { id: message_id, account_id, project_id, created_at }
  await pipeline.accept(tx, [messageOf(row, { from, to, body, in_reply_to, provider })])
  if (!isPhone(from)) return
  const choice = { account_id, project_id, number: from, source_message_id: message_id }
  const keyword = keywordOf(received)
  if (keyword === "stop") await stop(tx, choice)
  if (keyword === "start") await start(tx, choice)
}

/** No database keeps NUL in a text, nor half a character. */
const kept = (text: string, most: number) => text.replaceAll("\0", "").slice(0, most).toWellFormed()

async function accountOf(db: Reader, project_id: string) {
  const { id, account_id } = projects
  const [owner] = await db.select({ account_id }).from(projects).where(eq(id, project_id))
  return owner
}

interface KeptText {
  from: string
  to: string
  body: string
  in_reply_to: string | null
  provider: string
}

function messageOf(
  row: Pick<NewMessage, "id" | "account_id" | "project_id" | "created_at">,
  { from, to, body, in_reply_to, provider }: KeptText,
): NewMessage {
  const { encoding, segments } = smsSegments(body)
  const recipient = { email: from, name: null, kind: "to", status_reason: null } as const
  return {
    ...row,
    ...{ channel: CHANNEL, address: from, sender: to, sender_domain: null, subject: null },
    recipients: [{ ...recipient, status: "received" }],
    envelope: { sms: { encoding, segments, in_reply_to } },
    ...{ batch_id: null, stream: "transactional", source: "inbound", units: 0 },
    ...{ tags: [], metadata: {}, api_key_id: null, idempotency_key: null },
    ...{ rfc_message_id: null, thread_id: null, sandbox: false },
    content: { body },
    received: { provider, segments, body, in_reply_to },
  }
}

const REPLY_SECONDS = 72 * 3600

/** Messages of a number that are looked at: the last one that was sent is usually the last one. */
const MOST_LOOKED_AT = 200

/** The id of the last text to a number, where it was sent within 72 hours; else null. */
async function answered(db: Reader, project: string, number: string): Promise<string | null> {
  const { id, project_id, address, channel, status, sent_at } = messages
  const some = db
    .select({ id, channel, status, sent_at })
    .from(messages)
    .where(and(eq(project_id, project), eq(address, number)))
    .orderBy(desc(id))
    .limit(MOST_LOOKED_AT)
  const since = secondsFromNow(-REPLY_SECONDS)
  let last: { id: string; sent_at: string } | undefined
  for (const one of await some) {
    if (one.channel !== CHANNEL || one.status === "received" || one.sent_at === null) continue
    if (one.sent_at < since || (last && last.sent_at >= one.sent_at)) continue
    last = { id: one.id, sent_at: one.sent_at }
  }
  return last?.id ?? null
}

type Choosing = Pick<NumberChoice, "account_id" | "project_id" | "number"> & {
  source_message_id: string
}

async function stop(tx: Tx, { source_message_id, ...who }: Choosing): Promise<void> {
  const { project_id, number: address } = who
  const given = { channel: CHANNEL, address, reason: "unsubscribe", origin: "event" } as const
  await suppress(tx, project_id, { ...given, source_message_id })
  const proof = `the text ${source_message_id}`
  await planNumberChoices(tx, [{ ...who, is_wanted: false, reason: "stop", proof }])
}

/** Only what unsubscribing made goes: a number that an operator suppressed stays so. */
async function start(tx: Tx, { source_message_id, ...who }: Choosing): Promise<void> {
  const { project_id, number: address } = who
  await unsuppress(tx, project_id, { channel: CHANNEL, address, reason: "unsubscribe" })
  const proof = `the text ${source_message_id}`
  await planNumberChoices(tx, [{ ...who, is_wanted: true, reason: "start", proof }])
}
