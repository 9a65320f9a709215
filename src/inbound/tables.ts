import { ne, sql } from "drizzle-orm"
import type { Mailbox } from "../lib/address"
import { STORED } from "../plans/stored-bytes"
import {
  bool,
  bytes,
  eventRef,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life } from "../store/life"

export const INBOUND_KINDS = [
  "new",
  "reply",
  "bounce",
  "auto_reply",
  "complaint",
  "dmarc_report",
  "tls_report",
  "list",
] as const

export type InboundKind = (typeof INBOUND_KINDS)[number]

export type AuthVerdict = "pass" | "fail" | "none" | "temperror"

/** The SMTP session that brought a mail, and its envelope. */
interface InboundSession {
  /** The peer's address, behind a trusted proxy the client's. */
  address: string
  helo: string
  /** Empty for the null sender. */
  mail_from: string
  /** The accepted recipients of the same project, as the client wrote them. */
  to: string[]
  tls: { version: string; cipher: string } | null
}

export interface InboundFile {
  /** "0", "1" … in the order of the message. */
  id: string
  filename: string | null
  content_type: string
  size: number
  content_id: string | null
  disposition: string | null
  sha256: string
}

/** What the message says, without its bodies. */
export interface ParsedInbound {
  to: Mailbox[]
  cc: Mailbox[]
  reply_to: Mailbox[]
  /** Names in lower case, every value of each. */
  headers: Record<string, string[]>
  references: string[]
  attachments: InboundFile[]
  /** The metadata of the message that this one answers. */
  reply_to_metadata: Record<string, unknown> | null
  spam: { score: number; flagged: boolean; rules: { rule: string; points: number }[] }
  /** What a DSN, an ARF, a DMARC or a TLS report says; null for every other mail. */
  report: unknown
  /** Absent where the lists of addresses are whole. */
  truncated?: true
}

/** The total of a project: its mails that were processed, or given up. */
export const INBOUND_COUNTER = "inbound_emails"

/** One row for each recipient that was accepted, before the sender is told 250. */
export const inboundEmails = table(
  "inbound_emails",
  {
    id: id(),
    /** Both are "" while the mail to an address of the instance itself is not processed. */
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    /** Of the recipient, in A-labels. */
    domain: text().notNull(),
    /** In comparable form. */
    to_email: text().notNull(),
    from_email: text(),
    from_name: text(),
    subject: text(),
    rfc_message_id: text(),
    kind: text<InboundKind>().notNull(),
    status: text<"received" | "processed" | "failed">().notNull(),
    thread_id: ref(),
    in_reply_to: text(),
    replied_to_message_id: ref(),
    mailbox_hash: text(),
    auto_submitted: text(),
    verified: bool(),
    spf_verdict: text<AuthVerdict>(),
    dkim_verdict: text<AuthVerdict>(),
    dmarc_verdict: text<AuthVerdict>(),
    arc_verdict: text<AuthVerdict>(),
    parse_error: bool().notNull(),
    size: int().notNull(),
    /** What it takes of the bytes that its project stores: its part of a shared file. Null of an earlier version: `size`. */
    stored_bytes: int(),
    /** The file of the raw message; "" where `inbound_raws` has it. */
    raw_sha256: text().notNull(),
    session: json<InboundSession>().notNull(),
    /** Null until it is processed. */
    parsed: json<ParsedInbound | null>(),
    /** The route that decided what happens with it. */
    route_id: ref(),
    event_id: eventRef(),
    created_at: time().notNull(),
  },
  (mail) => [
    index("inbound_emails_by_project").on(mail.project_id, mail.id),
    index("inbound_emails_by_recipient").on(mail.project_id, mail.to_email, mail.id),
    // What only processing knows is not in an index before: each entry is written once.
    index("inbound_emails_by_sender")
      .on(mail.project_id, mail.from_email, mail.id)
      .where(sql`from_email IS NOT NULL`),
    index("inbound_emails_by_kind").on(mail.project_id, mail.kind, mail.id),
    index("inbound_emails_by_thread")
      .on(mail.project_id, mail.thread_id, mail.id)
      .where(sql`thread_id IS NOT NULL`),
    index("inbound_emails_by_message_id")
      .on(mail.project_id, mail.rfc_message_id)
      .where(sql`rfc_message_id IS NOT NULL`),
  ],
)
life(inboundEmails, {
  owner: "project",
  ends: "inbound_days",
  personal: { found_by: { address: "from_email" }, searched: ["session", "parsed"] },
  counts: {
    name: INBOUND_COUNTER,
    where: ne(inboundEmails.status, "received"),
    bytes: {
      name: STORED.received,
      of: sql`coalesce(${inboundEmails.stored_bytes}, ${inboundEmails.size})`,
    },
  },
})

export type InboundRow = typeof inboundEmails.$inferSelect

/** Large and cold: lists do not show the bodies. */
export const inboundContents = table("inbound_contents", {
  inbound_id: id().references(() => inboundEmails.id, { onDelete: "cascade" }),
  content: json<InboundContent | StoredElsewhere>().notNull(),
})
life(inboundContents, {
  owner: "project",
  ends: "with row",
  names: { inbound_id: "inbound_emails" },
})

/** The raw message of a small mail, written with its row. A larger one is a file (`raw_sha256`). */
export const inboundRaws = table("inbound_raws", {
  inbound_id: id().references(() => inboundEmails.id, { onDelete: "cascade" }),
  raw: bytes().notNull(),
})
life(inboundRaws, { owner: "project", ends: "with row", names: { inbound_id: "inbound_emails" } })

/** A content that is too large for a row: the hash of the file that has it as JSON. */
export interface StoredElsewhere {
  sha256: string
}

export interface InboundContent {
  text_body: string | null
  html_body: string | null
  stripped_text: string | null
}

/** Which mail names which file, that of its raw message included: a file that no mail names is removed. */
export const inboundFiles = table(
  "inbound_files",
  {
    sha256: text().notNull(),
    inbound_id: ref().notNull(),
  },
  (file) => [
    primaryKey({ columns: [file.sha256, file.inbound_id] }),
    index("inbound_files_by_mail").on(file.inbound_id),
  ],
)
life(inboundFiles, { owner: "project", ends: "with row", names: { inbound_id: "inbound_emails" } })

export type RouteAction = "webhook" | "forward" | "drop"

/** What a project does with mail to an address of its receiving domains. */
export const inboundRoutes = table(
  "inbound_routes",
  {
    id: id(),
    project_id: ref().notNull(),
    /** An address whose local part may be `*`, or end in `+*`. In comparable form. */
    match_to: text().notNull(),
    action: text<RouteAction>().notNull(),
    /** Of `webhook`: the id of the one endpoint that is told; of `forward`: the address. */
    target: text(),
    /** The lowest number is asked first. */
    priority: int().notNull(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (route) => [uniqueIndex("inbound_routes_by_match").on(route.project_id, route.match_to)],
)
life(inboundRoutes, { owner: "project", ends: "never" })
