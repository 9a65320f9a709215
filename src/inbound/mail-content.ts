import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import type { Reader } from "../store/store"
import { type InboundContent, inboundContents } from "./tables"

const NOTHING: InboundContent = { text_body: null, html_body: null, stripped_text: null }

/** The bodies of a received mail, wherever they are stored. All are null before it is processed. */
export async function mailContent(
  db: Reader,
  inbound_blobs: Blobs,
  inbound_id: string,
): Promise<InboundContent> {
  const wanted = eq(inboundContents.inbound_id, inbound_id)
  const [row] = await db.select().from(inboundContents).where(wanted)
  if (!row) return NOTHING
  if (!("sha256" in row.content)) return row.content
  const bytes = await inbound_blobs.get(row.content.sha256)
  return bytes ? (JSON.parse(Buffer.from(bytes).toString()) as InboundContent) : NOTHING
}
