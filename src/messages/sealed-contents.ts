import { eq, inArray } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import type { Tx } from "../store/store"
import { messageContents } from "./tables"

/** Content that cannot be read from the database alone, and what of it is shown meanwhile. */
export interface SealedContent {
  sealed: string
  /** The content with its codes and links masked, which stays. Absent: nothing is shown, and nothing stays. */
  shown?: object
}

export const isSealed = (content: unknown): content is SealedContent =>
  typeof content === "object" && content !== null && "sealed" in content

/** Bound to the message: moved to another row it does not open. */
const contextOf = (message_id: string) => `message_contents:${message_id}:content`

export const sealContent = (
  secrets: Secrets,
  message_id: string,
  content: object,
  shown?: object,
): SealedContent => ({
  sealed: secrets.seal(JSON.stringify(content), contextOf(message_id)),
  ...(shown && { shown }),
})

/** Throws SecretError for another master key or another message. */
export const openContent = <Content>(
  secrets: Secrets,
  message_id: string,
  { sealed }: SealedContent,
): Content => JSON.parse(secrets.open(sealed, contextOf(message_id))) as Content

/** What reads may show of a stored content; undefined for nothing. */
export const readableOf = (content: unknown): unknown =>
  isSealed(content) ? content.shown : content

/** Of messages that are over: what is shown of their contents stays, and nothing where nothing is shown. */
export async function dropSealed(tx: Tx, over: { after: { id: string } }[]): Promise<void> {
  if (over.length === 0) return
  const { message_id } = messageContents
  const ids = over.map(({ after }) => after.id)
  for (const row of await tx.select().from(messageContents).where(inArray(message_id, ids))) {
    const own = eq(message_id, row.message_id)
    if (!isSealed(row.content)) continue
    const { shown: content } = row.content
    if (content) await tx.update(messageContents).set({ content }).where(own)
    else await tx.delete(messageContents).where(own)
  }
}
