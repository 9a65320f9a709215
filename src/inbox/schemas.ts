import { Type as t } from "@sinclair/typebox"
import { count, id, text } from "../lib/record-fields"

export const InboxToken = t.Object(
  {
    token: text("eyJhbGciOiJFZERTQSIsInR5cCI6ImluYm94K2p3dCJ9.eyJzdWIiOiIwMTk5YTFjMiJ9.c2ln"),
    subscriber_id: id(),
    expires_in: count(604_800, "Seconds."),
  },
  { title: "InboxToken" },
)
