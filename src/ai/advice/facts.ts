import type { Static } from "@sinclair/typebox"
import { and, desc, eq } from "drizzle-orm"
import { millis } from "../../core/time"
import { senderAuthentication } from "../../domains/sending-domains"
import type { PreflightParts } from "../../emails/preflight"
import { maySendFrom, rulesFor, type SendRules } from "../../emails/prepare"
import { fanOuts } from "../../fan-out/tables"
import type { Caller } from "../../identity/caller"
import { domainOf } from "../../lib/address"
import { percentText } from "../../reputation/sending-status"
import type { Reader } from "../../store/store"
import type { TopicRow } from "../../topics/tables"
import * as topics from "../../topics/topics"
import type { Analyzing } from "../ai-schemas"
import { openHours, sampleAudience } from "./audience-facts"
import type { ContentFacts } from "./content-facts-task"

/** What is analyzed. It is no broadcast yet. */
export type BroadcastDraft = Static<typeof Analyzing>["draft"]

export type AdviceParts = Pick<PreflightParts, "store" | "workers" | "rules">

/** Everything that the rules need, so that they read nothing themselves. */
export type AdviceFacts = Awaited<ReturnType<typeof readFacts>>

/** Reads a bounded number of rows for each rule. Throws 404 `topic_not_found`. */
export async function readFacts(
  { store: { read }, workers, rules }: AdviceParts,
  caller: Caller,
  draft: BroadcastDraft,
) {
  const { channel, topic_key } = draft
  const { project_id } = caller
  const is_email = channel === "email"
  const topic = topic_key == null ? null : await topics.find(read, project_id, topic_key)
  const at = millis()
  return {
    ...{ draft, topic, at },
    content: await workers.run<ContentFacts>("advice-content", draft, { deadline_ms: 5_000 }),
    sender: is_email ? await senderFacts(rules, caller) : null,
    sending: sendingFacts(caller),
    topic_sends: topic ? await latestPublishes(read, topic) : [],
    audience: await sampleAudience(read, caller, { channel, topic, at }),
    hours: is_email ? await openHours(read, project_id, at) : [],
  }
}

const RECORDS = ["dkim", "spf", "dmarc", "return_path"] as const

/** What receivers find of the default sender, and how recipients end the mail. */
async function senderFacts(rules: SendRules, caller: Caller) {
  const { project_id, project_settings } = caller
  const from = project_settings.default_from
  const domain = from && domainOf(from.email)
  const has_pages = (await rules.publicAddress(project_id, domain)) !== undefined
  const own = await rulesFor(rules, project_id, false)
  const found = domain && (await senderAuthentication(rules.read, project_id, domain))
  // The operator may vouch for a domain that the project does not have.
  const records = found && found.status === "verified" ? found.records : undefined
  return {
    domain,
    may_send: domain !== null && (await maySendFrom(domain, caller, own)),
    /** Records of a verified domain that its last check missed. */
    lacking: records ? RECORDS.filter((name) => records[name]?.status !== "verified") : [],
    /** Unsubscribe pages have an address that people outside reach. */
    has_pages,
    takes_mail: rules.unsubscribe.mail_host !== null,
  }
}

/** As the last evaluation left it. `warning`: the next worse status, where the rates are near its threshold. */
function sendingFacts({
  sending_status: status,
  sending_status_reason: reason,
  reputation,
}: Caller) {
  if (!reputation?.warned) return { status, reason, warning: null }
  const { warned: next, bounce_rate, complaint_rate } = reputation
  const rates = `bounces ${percentText(bounce_rate)}, complaints ${percentText(complaint_rate)}`
  return { status, reason, warning: { next, reason: rates } }
}

const MOST_PUBLISHES = 100

const { status, audience, scheduled_at, started_at, created_at } = fanOuts

const latestPublishes = async (db: Reader, { id, project_id }: TopicRow) =>
  db
    .select({ status, audience, scheduled_at, started_at, created_at })
    .from(fanOuts)
    .where(and(eq(fanOuts.topic_id, id), eq(fanOuts.project_id, project_id)))
    .orderBy(desc(fanOuts.id))
    .limit(MOST_PUBLISHES)
