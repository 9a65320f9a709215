import type { Blobs } from "../../src/core/blobs"
import type {
  InboundContent,
  InboundFile,
  InboundRow,
  ParsedInbound,
} from "../../src/inbound/tables"
import { addInbound } from "../harness/inbound-rows"
import type { TestProject, TestService } from "../harness/service"

export const RAW = "From: ann@elsewhere.test\r\nSubject: A question\r\n\r\nWhere is it?\r\n"

interface Wanted extends Omit<Partial<InboundRow>, "parsed"> {
  parsed?: Partial<ParsedInbound>
  bodies?: Partial<InboundContent>
  /** Stored under their hashes, in this order. */
  files?: (Partial<InboundFile> & { content: string })[]
}

const NOTHING: ParsedInbound = {
  to: [{ email: "Support@in.example.test", name: "Support" }],
  cc: [],
  reply_to: [],
  headers: { subject: ["A question"] },
  references: [],
  attachments: [],
  reply_to_metadata: null,
  spam: { score: 0, flagged: false, rules: [] },
  report: null,
}

/** A received mail of the project, with its raw bytes and its files. */
export async function received(
  { store, parts }: TestService,
  project: Pick<TestProject, "account_id" | "project_id">,
  { parsed, bodies, files = [], ...row }: Wanted = {},
): Promise<InboundRow> {
  const { sha256: raw_sha256, size } = await put(parts.inbound_blobs, RAW)
  const attachments: InboundFile[] = []
  for (const [at, { content, ...file }] of files.entries()) {
    const stored = await put(parts.inbound_blobs, content)
    const kept = { content_type: "text/plain", content_id: null, disposition: "attachment" }
    attachments.push({ id: String(at), filename: "a.txt", ...kept, ...stored, ...file })
  }
  const said = { ...NOTHING, attachments, ...parsed }
  return addInbound(store, project, { raw_sha256, size, parsed: said, ...row }, bodies)
}

const put = (blobs: Blobs, text: string) => blobs.put(Buffer.from(text))
