import { Type as t } from "@sinclair/typebox"
import { BulkFailures } from "../http/bulk-items"
import { nameText, notBoth, oneOf, orNull } from "../http/field-schemas"
import { dateFilters, pageQuery } from "../http/page"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { SCOPE_TYPES, SUPPRESSION_ORIGINS, SUPPRESSION_REASONS } from "./tables"

export const MOST_AT_ONCE = 1000

const ADDRESS = "ann@example.com"
const NOTE_CHARACTERS = 500
/** A whole reply as it is kept can be pasted. */
const DIAGNOSTIC_CHARACTERS = 1_000

const reason = () => oneOf(...SUPPRESSION_REASONS)
const note = () => t.Optional(orNull(nameText(NOTE_CHARACTERS)))

const scope = t.Object(
  {
    type: word(SCOPE_TYPES, "`project` holds for every message."),
    key: rarely(text("newsletter", "The category or the topic.")),
  },
  { title: "SuppressionScope" },
)

export const Suppression = t.Object(
  {
    id: id(),
    channel: word(["email", "sms"]),
    address: text(ADDRESS, "An email address in lower case, or with `sms` a phone number."),
    reason: word(SUPPRESSION_REASONS),
    origin: word(SUPPRESSION_ORIGINS, "`event` is a bounce or a complaint."),
    scope,
    source_message_id: maybe(id("The message that bounced or got the complaint.")),
    diagnostic: maybe(
      text("550 5.1.1 User unknown", "The reply that caused it, up to 1,000 characters."),
    ),
    note: rarely(text("Asked by telephone.")),
    expires_at: rarely(time("Null: it holds until it is removed.")),
    created_at: time(),
  },
  { title: "Suppression" },
)

export const NewSuppression = t.Object(
  {
    email: t.Optional(t.String({ description: "The address. Give this or `phone`." })),
    phone: t.Optional(t.String({ description: "A phone number, such as +4915112345678." })),
    reason: t.Optional(reason()),
    note: note(),
    expires_at: t.Optional(
      orNull(t.String({ description: "The suppression ends at this time. Default: never." })),
    ),
  },
  notBoth("email", "phone"),
)

export const BulkSuppressions = t.Object({
  emails: t.Array(NewSuppression, {
    maxItems: MOST_AT_ONCE,
    description: `At most ${MOST_AT_ONCE}. A bad one does not stop the others.`,
  }),
})

export const BulkAdded = t.Object(
  {
    added: count(998),
    existing: count(1, "Addresses that were suppressed before."),
    failed: BulkFailures("emails"),
  },
  { title: "BulkAdded" },
)

export const BulkRemoval = t.Object({
  emails: t.Array(t.String(), { maxItems: MOST_AT_ONCE }),
})

export const BulkRemoved = t.Object(
  {
    removed: count(2, "Addresses that are not suppressed any more."),
    not_found: t.Array(t.String(), { examples: [["ben@example.com"]] }),
  },
  { title: "BulkRemoved" },
)

export const SuppressionCheck = t.Object(
  {
    address: text(ADDRESS),
    suppressed: flag(true),
    suppression: maybe(Suppression),
  },
  { title: "SuppressionCheck" },
)

export const suppressionQuery = pageQuery({
  reason: t.Optional(reason()),
  channel: t.Optional(oneOf("email", "sms")),
  address: t.Optional(t.String({ description: "Only this email address or phone number." })),
  origin: t.Optional(oneOf(...SUPPRESSION_ORIGINS)),
  diagnostic: t.Optional(
    t.String({
      minLength: 1,
      maxLength: DIAGNOSTIC_CHARACTERS,
      description: "Only those whose reply has this text in it, in any case.",
    }),
  ),
  created_after: dateFilters.created_after,
})

export const checkQuery = t.Object({
  email: t.Optional(t.String({ description: "The address. Give this or `phone`." })),
  phone: t.Optional(t.String({ description: "A phone number, such as +4915112345678." })),
  category: t.Optional(t.String({ description: "Ask for mail of this category." })),
  topic: t.Optional(t.String({ description: "Ask for mail of this topic." })),
})
