import { sql } from "drizzle-orm"
import type { AudienceChannel } from "../lib/preferences"
import type { FrozenIntent } from "../messages/planner"
import { id, index, int, json, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

export type FanOutKind = "publish"

export type FanOutStatus =
  | "scheduled"
  | "queued"
  | "fanning_out"
  | "paused"
  | "completed"
  | "failed"
  | "cancelled"

/** Each row makes many messages from one intent. A publish is such a row. */
export const fanOuts = table(
  "fan_outs",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    kind: text<FanOutKind>().notNull(),
    status: text<FanOutStatus>().notNull(),
    status_reason: text(),
    topic_id: ref(),
    topic_key: text(),
    /** The recipients at its start; null before it. */
    audience: int(),
    channels: json<AudienceChannel[]>().notNull(),
    intent: json<FrozenIntent>().notNull(),
    dedupe_key: text(),
    scheduled_at: time(),
    expires_at: time(),
    created_at: time().notNull(),
    started_at: time(),
    completed_at: time(),
  },
  (fan_out) => [
    index("fan_outs_by_topic").on(fan_out.topic_id, fan_out.id).where(sql`topic_id IS NOT NULL`),
    index("fan_outs_by_project").on(fan_out.project_id, fan_out.id),
    index("fan_outs_by_dedupe_key")
      .on(fan_out.topic_id, fan_out.dedupe_key)
      .where(sql`dedupe_key IS NOT NULL`),
    index("fan_outs_open").on(fan_out.project_id, fan_out.status).where(sql`completed_at IS NULL`),
  ],
)
life(fanOuts, { owner: "project", ends: "messages_days" })

export type FanOutRow = typeof fanOuts.$inferSelect

/** A share of the audience, which one node walks at a time. */
export const fanOutParts = table(
  "fan_out_parts",
  {
    fan_out_id: ref().notNull(),
    part: int().notNull(),
    /** The number of the last member whose messages are written. */
    cursor: int().notNull(),
    until: int().notNull(),
  },
  (row) => [primaryKey({ columns: [row.fan_out_id, row.part] })],
)
life(fanOutParts, { owner: "project", ends: "with row", names: { fan_out_id: "fan_outs" } })

export type FanOutPartRow = typeof fanOutParts.$inferSelect
