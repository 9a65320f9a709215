import { and, desc, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import type { JobKind } from "../jobs/jobs"
import { newRowInserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { channelOf, type ProviderKind, type ProviderNotice, type ProviderReport } from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs, providerReceipts } from "./tables"

/** How the instance's own provider is called where people read it. */
export const INSTANCE_NAME = "instance"

export const shownId = ({ id, project_id }: Pick<ConfigRow, "id" | "project_id">): string =>
  project_id === INSTANCE ? INSTANCE_NAME : id

/**
 * The secret part of a callback's address. It is made from the id, so that it can be shown again
 * though only its hash is kept.
 */
export const callbackToken = (
  secrets: Secrets,
  row: Pick<ConfigRow, "id" | "project_id">,
): string => secrets.mac("provider callback", shownId(row)).toString("base64url")

export const callbackPath = ({ kind, provider }: Pick<ConfigRow, "kind" | "provider">): string =>
  `/v1/callbacks/${channelOf(kind)}/${provider}`

/** The address that a provider of this configuration calls; undefined where this server has no public one. */
export const callbackUrlOf = (
  secrets: Secrets,
  row: Pick<ConfigRow, "id" | "project_id" | "kind" | "provider">,
  base: string | undefined,
): string | undefined =>
  base === undefined ? undefined : `${base}${callbackPath(row)}/${callbackToken(secrets, row)}`

export const callbackHash = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")

/** As jobs name the recipient that were queued before an upgrade to this version. */
interface EarlierNotice {
  recipient_email?: string
}

/** The address as the provider writes it; undefined: the only recipient of the message. */
export const recipientOf = (notice: ProviderNotice): string | undefined =>
  notice.recipient ?? (notice as EarlierNotice).recipient_email

const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** The configuration that a callback's address belongs to; undefined for any other. */
export async function findByToken(
  db: Reader,
  kind: ProviderKind,
  { provider = "", config_token = "" }: Record<string, string | undefined>,
): Promise<ConfigRow | undefined> {
  if (!TOKEN.test(config_token)) return undefined
  const rows = db.select().from(providerConfigs)
  // Hashes are compared, so that the time it takes says nothing of the token.
  const [row] = await rows.where(
    and(
      eq(providerConfigs.callback_token_hash, callbackHash(config_token)),
      eq(providerConfigs.kind, kind),
      eq(providerConfigs.provider, provider),
    ),
  )
  return row
}

/** What a provider told about a message after it took it, or what came in by it. */
export interface ProviderFeedback extends ProviderReport {
  config_id: string
  /** Its name. */
  provider: string
  /** Null for the instance's own provider. */
  project_id: string | null
}

/** A notification waits in the queue until its message is known, ten minutes at most. */
export const providerFeedback: JobKind<ProviderFeedback> = {
  name: "provider.feedback",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(2 ** attempt, 60)),
}

/** Remembers under which ids providers took messages. What was kept before stays. */
export const keepReceipts = (
  tx: Tx,
  list: Omit<typeof providerReceipts.$inferInsert, "created_at">[],
) =>
  insertReceipts(
    tx,
    list.map(({ provider_message_id: id, ...receipt }) => ({
      ...{ ...receipt, provider_message_id: keptId(id), created_at: now() },
    })),
  )

const insertReceipts = newRowInserter(providerReceipts, "provider_message_id")

/** Gateways may count what comes in apart from what goes out: then both have the same ids. */
const RECEIVED = "received "

const MOST_ID = 200

/** No database keeps NUL in a text, and Postgres no long text in an index. */
const keptId = (id: string) => id.replaceAll("\0", "").slice(0, MOST_ID).toWellFormed()

/** Keeps the provider's id of a message that came in. Returns false for one that was kept before. */
export async function isFirst(tx: Tx, receipt: typeof providerReceipts.$inferInsert) {
  const provider_message_id = RECEIVED + keptId(receipt.provider_message_id)
  const fresh = await insertReceipts(tx, [{ ...receipt, provider_message_id }])
  return fresh.size > 0
}

/** The provider's own id of a message, by the last one that took it. */
export async function lastReceiptId(
  db: Reader,
  project: string,
  id: string,
): Promise<string | null> {
  const { provider_message_id, message_id, project_id, created_at } = providerReceipts
  const rows = db.select({ provider_message_id }).from(providerReceipts)
  const ours = rows.where(and(eq(message_id, id), eq(project_id, project)))
  const [row] = await ours.orderBy(desc(created_at)).limit(1)
  return row ? receiptId(row) : null
}

/** By its receipt. */
const receiptId = ({
  provider_message_id: id,
}: Pick<typeof providerReceipts.$inferSelect, "provider_message_id">): string =>
  id.startsWith(RECEIVED) ? id.slice(RECEIVED.length) : id

/**
 * The message that the configuration sent under the provider's id or, where the provider gives that back, under
 * ours; and its project. Undefined while it is unknown.
 */
export async function messageFor(
  db: Reader,
  told: Pick<ProviderFeedback, "config_id" | "project_id" | "provider_message_id" | "message_id">,
) {
  const { config_id, project_id, message_id, provider_message_id = message_id } = told
  if (provider_message_id === undefined) return undefined
  const rows = db.select().from(providerReceipts)
  const [row] = await rows.where(
    and(
      eq(providerReceipts.config_id, config_id),
      eq(providerReceipts.provider_message_id, keptId(provider_message_id)),
      project_id === null ? undefined : eq(providerReceipts.project_id, project_id),
    ),
  )
  return row && { id: row.message_id, project_id: row.project_id }
}

/** Whether the configuration may have sent the message: no other one kept a receipt of it. */
export async function mayHaveSent(
  db: Reader,
  config_id: string,
  message: { id: string; project_id: string },
): Promise<boolean> {
  const kept = db.select({ config_id: providerReceipts.config_id }).from(providerReceipts)
  const ours = and(
    eq(providerReceipts.message_id, message.id),
    eq(providerReceipts.project_id, message.project_id),
  )
  const rows = await kept.where(ours)
  return rows.length === 0 || rows.some((one) => one.config_id === config_id)
}
