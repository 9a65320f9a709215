import { Type as t } from "@sinclair/typebox"
import { id } from "../lib/record-fields"
import {
  COMMON,
  type ExplainedStage,
  type ExplainedStep,
  explanationFields,
  explanationOf,
  factsOf,
  type MessageFacts,
  namesOf,
} from "../messages/explanation"
import { statusesOf } from "../messages/status-changes"
import type { Reader } from "../store/store"
import { find } from "./sms"

/** The way of a text, stage by stage. */
const WAY: ExplainedStage[] = [
  { name: "auth", read: COMMON.auth },
  { name: "source", read: COMMON.source },
  { name: "quota", read: COMMON.quota },
  { name: "sending_status", read: COMMON.sendingStatus },
  { name: "sender", read: sender },
  { name: "template", read: COMMON.template },
  { name: "suppression", read: COMMON.suppression },
  { name: "preference", read: COMMON.preference },
  { name: "quiet_hours", read: COMMON.quietHours },
  { name: "queue", read: COMMON.queue },
  { name: "provider", read: COMMON.provider },
  { name: "attempt", read: COMMON.attempt },
  { name: "outcome", read: COMMON.outcome },
  { name: "webhooks", read: COMMON.webhooks },
]

/** Of a text that came in, nothing was asked. */
const RECEIVED: ExplainedStage[] = [
  { name: "source", read: received },
  { name: "webhooks", read: COMMON.webhooks },
]

const SUMMARY = "The text to +14155550100 was delivered after 1 attempt."

export const Explanation = t.Object(
  { sms_id: id(), ...explanationFields(statusesOf("sms"), namesOf(WAY), SUMMARY) },
  { title: "SmsExplanation" },
)

/** The whole way of one text, each stage with its reason. Throws 404 for a foreign one. */
export async function explain(db: Reader, project_id: string, id: string) {
  const facts = await factsOf(db, await find(db, project_id, id))
  const { address, sender, status } = facts.message
  if (status !== "received") return { sms_id: id, ...explanationOf(facts, "text", WAY) }
  const summary = `The text from ${address} to ${sender} was received.`
  return { sms_id: id, ...explanationOf(facts, "text", RECEIVED), summary }
}

function sender({ message: { sender, envelope } }: MessageFacts): ExplainedStep[] {
  if (sender === null) return [["by_provider", "none", "The provider chooses the sender."]]
  const by = envelope?.sms?.from_given ? "The request named" : "The configuration has"
  return [["number", "pass", `${by} the sender ${sender}.`]]
}

function received({ message: { provider, envelope } }: MessageFacts): ExplainedStep[] {
  const answers = envelope?.sms?.in_reply_to
  const to = answers ? ` It answers the text ${answers}.` : ""
  return [["received", "pass", `It came in over ${provider ?? "a provider"}.${to}`]]
}
