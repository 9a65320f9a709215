import { firstIdAt, newId } from "../../src/core/ids"
import { millisFrom, now } from "../../src/core/time"
import { domains } from "../../src/domains/tables"
import { totalsOf } from "../../src/inbound/inbound-retention"
import {
  type InboundContent,
  type InboundRow,
  inboundContents,
  inboundEmails,
  inboundFiles,
} from "../../src/inbound/tables"
import { bumpAll } from "../../src/store/counters"
import type { Store } from "../../src/store/store"

/** Ids tell the time at which they were made. */
const idAt = (time: string) => firstIdAt(millisFrom(time)).slice(0, 23) + newId().slice(23)

/** A received mail as it stands in the database, past every server. */
export async function addInbound(
  store: Store,
  owner: { account_id: string; project_id: string },
  more: Partial<InboundRow> = {},
  bodies: Partial<InboundContent> = {},
): Promise<InboundRow> {
  const row: InboundRow = {
    id: more.created_at ? idAt(more.created_at) : newId(),
    account_id: owner.account_id,
    project_id: owner.project_id,
    domain: "in.example.test",
    to_email: "support@in.example.test",
    from_email: "ann@elsewhere.test",
    from_name: "Ann",
    subject: "A question",
    rfc_message_id: "<1@elsewhere.test>",
    kind: "new",
    status: "processed",
    thread_id: null,
    in_reply_to: null,
    replied_to_message_id: null,
    mailbox_hash: null,
    auto_submitted: null,
    verified: true,
    spf_verdict: "pass",
    dkim_verdict: "none",
    dmarc_verdict: "none",
    arc_verdict: "none",
    parse_error: false,
    size: 5,
    stored_bytes: 5,
    raw_sha256: new Bun.CryptoHasher("sha256").update("bytes").digest("hex"),
    session: {
      address: "192.0.2.1",
      helo: "mx.elsewhere.test",
      mail_from: "ann@elsewhere.test",
      to: ["support@in.example.test"],
      tls: null,
    },
    parsed: {
      to: [{ email: "support@in.example.test", name: null }],
      cc: [],
      reply_to: [],
      headers: { subject: ["A question"] },
      references: [],
      attachments: [],
      reply_to_metadata: null,
      spam: { score: 0, flagged: false, rules: [] },
      report: null,
    },
    route_id: null,
    event_id: null,
    created_at: now(),
    ...more,
  }
  const content = {
    text_body: "Where is it?",
    html_body: null,
    stripped_text: "Where is it?",
    ...bodies,
  }
  const files = [row.raw_sha256, ...(row.parsed?.attachments ?? []).map(({ sha256 }) => sha256)]
  await store.tx(async (tx) => {
    await tx.insert(inboundEmails).values(row)
    await tx.insert(inboundContents).values({ inbound_id: row.id, content })
    const named = [...new Set(files)].map((sha256) => ({ sha256, inbound_id: row.id }))
    await tx.insert(inboundFiles).values(named)
    if (row.status !== "received") await bumpAll(tx, totalsOf([row]))
  })
  return row
}

/** A verified domain of the project that takes mail, past every look at its records. */
export async function addReceivingDomain(
  store: Store,
  owner: { account_id: string; project_id: string },
  domain = `in-${newId().slice(-12)}.example`,
): Promise<string> {
  const moment = now()
  await store.tx((tx) =>
    tx.insert(domains).values({
      id: newId(),
      account_id: owner.account_id,
      project_id: owner.project_id,
      domain,
      status: "verified",
      verification_token: "0".repeat(32),
      receiving: true,
      return_path: "bounce",
      records: {},
      provider_identity_status: "not_required",
      provider_dkim_status: "not_required",
      window_began_at: moment,
      verified_at: moment,
      created_at: moment,
      updated_at: moment,
    }),
  )
  return domain
}
