import { id, index, int, primaryKey, ref, table, text, time, uniqueIndex } from "../store/columns"
import { life } from "../store/life"

/** A subject that subscribers follow. */
export const topics = table(
  "topics",
  {
    id: id(),
    project_id: ref().notNull(),
    /** It never changes. */
    key: text().notNull(),
    name: text().notNull(),
    description: text(),
    /** What holds for a member without a choice. */
    default: text<"on" | "off">().notNull(),
    visibility: text<"public" | "private">().notNull(),
    subscriber_count: int().notNull(),
    /** The number of the member that joined last. */
    last_number: int().notNull(),
    /** The searchable form of key, name and description. */
    search_key: text().notNull(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (topic) => [
    uniqueIndex("topics_by_key").on(topic.project_id, topic.key),
    index("topics_by_project").on(topic.project_id, topic.id),
  ],
)
life(topics, { owner: "project", ends: "never", counts: { name: "topics" } })

export type TopicRow = typeof topics.$inferSelect

/**
 * The members of topics. Each join takes the next number of its topic, while it holds the topic's row:
 * so the members at one moment are those up to a number, and a later one has a higher number.
 */
export const topicMembers = table(
  "topic_members",
  {
    topic_id: ref().notNull(),
    number: int().notNull(),
    project_id: ref().notNull(),
    subscriber_id: ref().notNull(),
    created_at: time().notNull(),
  },
  (member) => [
    primaryKey({ columns: [member.topic_id, member.number] }),
    uniqueIndex("topic_members_by_subscriber").on(member.subscriber_id, member.topic_id),
    index("topic_members_by_id").on(member.topic_id, member.subscriber_id),
    index("topic_members_by_project").on(member.project_id),
  ],
)
life(topicMembers, {
  owner: "project",
  ends: "with row",
  names: { topic_id: "topics", subscriber_id: "subscribers" },
  personal: { found_by: { subscriber_id: "subscriber_id" } },
})
