import { and, eq, inArray, sql } from "drizzle-orm"
import { isUuid } from "../core/ids"
import { EMAIL_ID_HEADER, readEmailIdHeader, readLocalPart } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import { comparable } from "../lib/address"
import type { HeaderLists } from "../lib/seen-mail"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { ReadMail } from "./parse-inbound-task"
import { type InboundRow, inboundEmails } from "./tables"

/** Of a message that received mail may be about. */
const seen = {
  id: messages.id,
  account_id: messages.account_id,
  project_id: messages.project_id,
  channel: messages.channel,
  address: messages.address,
  recipients: messages.recipients,
  rfc_message_id: messages.rfc_message_id,
  metadata: messages.metadata,
  thread_id: messages.thread_id,
}

export type SeenMessage = Pick<typeof messages.$inferSelect, keyof typeof seen>

/** The message that a mail is about, and the kind of address whose MAC proves it. */
export interface Answered {
  message: SeenMessage
  proof: "b" | "r" | null
}

interface CorrelateParts {
  read: Reader
  secrets: Secrets
}

/**
 * The message of the project that the mail answers; the first hit wins (contract 22, reply
 * correlation): the token in the address, then In-Reply-To and References from the end, then a marked
 * id in the part that a report returns.
 */
export async function answered(
  { read, secrets }: CorrelateParts,
  row: Pick<InboundRow, "project_id" | "to_email">,
  mail: Pick<ReadMail, "in_reply_to" | "references" | "from" | "returned">,
): Promise<Answered | undefined> {
  const { project_id } = row
  const token = readLocalPart(secrets, row.to_email.split("@", 1)[0] ?? "")
  if (token) {
    const message = await messageById(read, token.message_id, project_id)
    if (message) return { message, proof: token.kind }
  }
  const named = [mail.in_reply_to, ...mail.references.toReversed()].filter((id) => id !== null)
  for (const id of new Set(named)) {
    const message = await byMessageId(read, project_id, id, mail.from?.email)
    if (message) return { message, proof: null }
  }
  const marked = markedIn(secrets, mail.returned)
  const message = marked === undefined ? undefined : await messageById(read, marked, project_id)
  return message && { message, proof: null }
}

/** A message by its id, of any project where none is named. */
export async function messageById(read: Reader, id: string, project_id?: string) {
  const ours = project_id === undefined ? undefined : eq(messages.project_id, project_id)
  const [message] = await read
    .select(seen)
    .from(messages)
    .where(and(eq(messages.id, id), ours))
  return message
}

/** The id in the header that a report returns, if its MAC is right. */
function markedIn(secrets: Secrets, returned: HeaderLists | null): string | undefined {
  const values = returned?.[EMAIL_ID_HEADER.toLowerCase()] ?? []
  for (const value of values) {
    const id = readEmailIdHeader(secrets, value)
    if (id !== undefined) return id
  }
  return undefined
}

/** The message that a report proves to return: by the marked id, or by the return path of the message. */
export function provenIn(
  secrets: Secrets,
  returned: HeaderLists,
  mail_from: string | null,
): string | undefined {
  const marked = markedIn(secrets, returned)
  if (marked !== undefined) return marked
  for (const path of [mail_from ?? "", ...(returned["return-path"] ?? [])]) {
    const [local = ""] = path.replace(/^\s*</, "").split("@", 1)
    const token = readLocalPart(secrets, local)
    if (token?.kind === "b") return token.message_id
  }
  return undefined
}

const OWN_FORM = /^<([0-9a-f-]{36})@/i

/** So many share one Message-ID at most: one mail that was submitted has 100 recipients. */
const MOST_SHARED = 200

/** Of several messages with one Message-ID the one whose recipient wrote the answer. */
async function byMessageId(
  read: Reader,
  project_id: string,
  rfc_message_id: string,
  author: string | undefined,
): Promise<SeenMessage | undefined> {
  const [, own = ""] = OWN_FORM.exec(rfc_message_id) ?? []
  if (isUuid(own.toLowerCase())) {
    const message = await messageById(read, own.toLowerCase(), project_id)
    if (message?.rfc_message_id?.toLowerCase() === rfc_message_id.toLowerCase()) return message
  }
  const shared = await read
    .select(seen)
    .from(messages)
    .where(
      and(
        eq(messages.project_id, project_id),
        eq(messages.rfc_message_id, rfc_message_id),
        sql`source = 'smtp'`, // as the index has it: a bound value would rule it out
      ),
    )
    .limit(MOST_SHARED)
  shared.sort((one, other) => (one.id < other.id ? -1 : 1))
  const from = author === undefined ? "" : comparable(author)
  const wrote = ({ recipients }: SeenMessage) =>
    recipients.some(({ email }) => comparable(email) === from)
  return shared.find(wrote) ?? shared[0]
}

/** The thread of a mail that the project received before and that this one names as an ancestor. */
export async function threadOfAncestor(
  read: Reader,
  project_id: string,
  { in_reply_to, references }: Pick<ReadMail, "in_reply_to" | "references">,
): Promise<string | undefined> {
  const named = [...new Set([in_reply_to, ...references.toReversed()])].filter((id) => id !== null)
  if (named.length === 0) return undefined
  const { rfc_message_id, thread_id } = inboundEmails
  const rows = await read
    .select({ rfc_message_id, thread_id })
    .from(inboundEmails)
    .where(and(eq(inboundEmails.project_id, project_id), inArray(rfc_message_id, named)))
  const known = new Map(rows.map((row) => [row.rfc_message_id, row.thread_id]))
  for (const id of named) {
    const thread = known.get(id)
    if (thread) return thread
  }
  return undefined
}
