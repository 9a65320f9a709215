import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import type { Reader } from "../store/store"
import { type InboundContent, inboundContents, type StoredElsewhere } from "./tables"

const NOTHING: InboundContent = { text_body: null, html_body: null, stripped_text: null }

/** The bodies of a received mail, wherever they are stored. All are null before it is processed. */
export async function mailContent(
  db: Reader,
  inbound_blobs: Blobs,
  inbound_id: string,
): Promise<InboundContent> {
  const wanted = eq(inboundContents.inbound_id, inbound_id)
  const [row] = await db.select().from(inboundContents).where(wanted)
  return row ? wholeContent(inbound_blobs, row.content) : NOTHING
}

/** The bodies themselves, where they are in a file as well. */
export async function wholeContent(
  inbound_blobs: Blobs,
  content: InboundContent | StoredElsewhere,
): Promise<InboundContent> {
  if (!("sha256" in content)) return content
  const bytes = await inbound_blobs.get(content.sha256)
  return bytes ? (JSON.parse(Buffer.from(bytes).toString()) as InboundContent) : NOTHING
}
