/**
 * Fields of a send that this server does not offer yet, or that only other services know. They are
 * refused, because ignoring them would break a promise.
 */
export const NOT_OFFERED = [
  "template",
  "template_id",
  "variables",
  "template_data",
  "track_opens",
  "track_clicks",
  "scheduled_at",
  "category",
  "subscriber_id",
  "topic_id",
  "topicId",
  "region",
]
