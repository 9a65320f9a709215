import { Type as t } from "@sinclair/typebox"
import { nameText, oneOf, orNull } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { CONSENT_SCOPES } from "./tables"

const LONGEST_REASON = 500
const LONGEST_PROOF = 2000

export const SOURCES = ["api", "page", "one_click", "sms", "import"] as const

const channel = () => oneOf(...AUDIENCE_CHANNELS)

const category = () =>
  t.Optional(
    orNull(
      t.String({
        pattern: CATEGORY_SLUG,
        description: "Only messages of this category. Default: the whole channel.",
      }),
    ),
  )

const sample = "newsletter"

export const Unsubscribe = t.Object(
  {
    id: id(),
    subscriber_id: id(),
    channel: word(AUDIENCE_CHANNELS),
    category: maybe(text(sample, "Null: the whole channel.")),
    reason: rarely(text("Asked by telephone.")),
    created_at: time(),
  },
  { title: "Unsubscribe" },
)

export const unsubscribeQuery = pageQuery({})

/** What a subscriber ends, or allows again. */
export const Choice = t.Object({
  channel: channel(),
  category: category(),
  reason: t.Optional(orNull(nameText(LONGEST_REASON))),
})

export const Resubscribed = t.Object(
  { removed: count(1, "Unsubscribes and suppressions that were removed.") },
  { title: "Resubscribed" },
)

const HASH = "c1a5298f939e87e8f962a5edfc206918d1e4f5e0d6a2f9c3b7a80f6e5d4c3b2a"

export const Consent = t.Object(
  {
    id: id(),
    subscriber_id: id(),
    channel: word(AUDIENCE_CHANNELS),
    category: maybe(text(sample, "Null: it is not about a category.")),
    scope: maybe(
      t.Object(
        {
          type: word(CONSENT_SCOPES),
          key: maybe(text(sample)),
        },
        {
          title: "ConsentScope",
          description: "What it is about. Null: the whole channel.",
        },
      ),
    ),
    action: word(["granted", "withdrawn"]),
    source: word(SOURCES, "The way in which it was given."),
    proof: maybe(text("Form of 21 November, line 4.", "What shows that it was so.")),
    ip_hash: rarely(text(HASH, "A keyed hash of the IP address of the person.")),
    created_at: time(),
    number: count(1, "The place in the chain of the subscriber, from 1."),
    prev_hash: rarely(text(HASH, "The hash of the record before. Null in the first record.")),
    hash: text(HASH, "SHA-256 of the record and of the hash before."),
  },
  { title: "Consent" },
)

export const consentQuery = pageQuery({})

export const NewConsent = t.Object({
  channel: channel(),
  category: category(),
  action: oneOf("granted", "withdrawn"),
  source: oneOf(...SOURCES),
  proof: t.Optional(
    orNull(
      t.String({
        minLength: 1,
        maxLength: LONGEST_PROOF,
        pattern: "^[^\\u0000]*$",
        description: "What shows that it was so: a form, a recording, a file.",
      }),
    ),
  ),
})
