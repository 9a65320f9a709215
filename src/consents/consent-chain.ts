import { and, desc, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { AudienceChannel } from "../lib/preferences"
import { type RowList, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { requireCategory } from "../subscribers/categories"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { type ConsentRow, type ConsentSecrets, recordConsent } from "./consents"
import { scopeOfChoice } from "./subscriber-choices"
import { type ConsentSource, consents } from "./tables"

type Subject = Pick<SubscriberRow, "id" | "project_id">

const chainOf = ({ id, project_id }: Subject) =>
  and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))

/** The consent records of a subscriber, newest first. */
export const listConsents = (db: Reader, subscriber: Subject): RowList<ConsentRow> => ({
  ...rowList(db, consents, { of: chainOf(subscriber), missing }),
  total: () => lengthOfChain(db, subscriber),
})

const missing = () => fail("not_found", "There is no such consent record.")

/** The number of the last record: they count up. */
export async function lengthOfChain(db: Reader, subscriber: Subject): Promise<number> {
  const numbers = db.select({ number: consents.number }).from(consents)
  const last = numbers.where(chainOf(subscriber)).orderBy(desc(consents.number))
  const [row] = await last.limit(1)
  return row?.number ?? 0
}

interface ConsentInput {
  channel: AudienceChannel
  category?: string | null | undefined
  action: "granted" | "withdrawn"
  source: ConsentSource
  proof?: string | null | undefined
}

/**
 * Records what a subscriber allowed or forbade elsewhere. It changes nothing of what is sent. Throws 422
 * for a category that the project does not have.
 */
export async function addConsent(
  tx: Tx,
  secrets: ConsentSecrets,
  { id: subscriber_id, project_id }: Subject,
  given: ConsentInput,
): Promise<ConsentRow> {
  const { channel, category, action, source, proof = null } = given
  await requireCategory(tx, project_id, category)
  const said = { channel, scope: scopeOfChoice(given), action, source, proof, ip: null }
  return recordConsent(tx, secrets, { project_id, subscriber_id, ...said })
}

/** The Consent record of the contract (43, section 1). */
export function shownConsent(row: ConsentRow) {
  const { project_id: _, address: __, scope_type, scope_key, ...rest } = row
  const { id, subscriber_id, channel, action, ...more } = rest
  const scope = scope_type === null ? null : { type: scope_type, key: scope_key }
  const category = scope_type === "category" ? scope_key : null
  return {
    ...{ id, subscriber_id: subscriber_id ?? "", channel, category, scope },
    ...{ action: action === "granted" ? ("granted" as const) : ("withdrawn" as const), ...more },
  }
}
