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
import { find } from "./push"

/** The way of a push message, stage by stage. */
const WAY: ExplainedStage[] = [
  { name: "auth", read: COMMON.auth },
  { name: "source", read: COMMON.source },
  { name: "quota", read: COMMON.quota },
  { name: "sending_status", read: COMMON.sendingStatus },
  { name: "device", read: device },
  { name: "template", read: COMMON.template },
  { name: "preference", read: COMMON.preference },
  { name: "quiet_hours", read: COMMON.quietHours },
  { name: "queue", read: COMMON.queue },
  { name: "provider", read: COMMON.provider },
  { name: "attempt", read: COMMON.attempt },
  { name: "outcome", read: COMMON.outcome },
  { name: "webhooks", read: COMMON.webhooks },
]

const SUMMARY = "The push message to pixel-7 was delivered after 1 attempt."

export const Explanation = t.Object(
  { push_id: id(), ...explanationFields(statusesOf("push"), namesOf(WAY), SUMMARY) },
  { title: "PushExplanation" },
)

/** The whole way of one push message, each stage with its reason. Throws 404 for a foreign one. */
export async function explain(db: Reader, project_id: string, id: string) {
  const facts = await factsOf(db, await find(db, project_id, id))
  return { push_id: id, ...explanationOf(facts, "push message", WAY) }
}

function device({ message }: MessageFacts): ExplainedStep[] {
  const { address, sender, user_id, batch_id, envelope } = message
  const owner = user_id === null ? "" : ` of the user ${user_id}`
  const send = batch_id === null ? "" : ` It is one message of the send ${batch_id}.`
  const way = `It is for the device ${address}${owner} (${sender}, ${envelope?.push?.provider}).`
  return [["device", "pass", way + send]]
}
