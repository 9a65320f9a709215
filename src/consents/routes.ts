import { Type as t } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { nameText, oneOf, orNull } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { rowList } from "../store/rows"
import type { Reader } from "../store/store"
import { find, findForUpdate } from "../subscribers/find-subscriber"
import { unsubscribes } from "../subscribers/tables"
import { addConsent, listConsents, shownConsent } from "./consents"
import * as choices from "./subscriber-choices"
import { CONSENT_SCOPES } from "./tables"

interface ConsentParts extends ListParts {
  secrets: Secrets
}

const ONE = "/v1/subscribers/{subscriber_id}" as const
const PAGE = pageQuery({})

const by = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "subscribers:read" : "subscribers:write", status)

/** What a subscriber ended, allowed again and agreed to. */
export const consentRoutes = (parts: ConsentParts): AnyRoute[] => [
  ...choiceRoutes(parts),
  ...chainRoutes(parts),
]

const choiceRoutes = ({ store, cursors, secrets }: ConsentParts): AnyRoute[] => [
  route({
    ...by("GET", `${ONE}/unsubscribes`),
    summary: "List what a subscriber unsubscribed from, newest first",
    description: "A row without a category is about the whole channel.",
    query: PAGE,
    response: Unsubscribe,
    errors: ["subscriber_not_found"],
    handle: async (call) => {
      const { project_id, params } = call
      const { id } = await find(store.read, project_id, params.subscriber_id)
      return listPage(call, cursors, unsubscribesOf(store.read, id), choices.shownUnsubscribe)
    },
  }),
  route({
    ...by("POST", `${ONE}/unsubscribe`, 201),
    summary: "End a channel, or one category of it, for a subscriber",
    description: "Critical messages are still sent. 409 means that it has ended already.",
    body: Choice,
    example: { channel: "email", category: "newsletter", reason: "Asked by telephone." },
    response: Unsubscribe,
    errors: ["subscriber_not_found", "conflict"],
    idempotent: true,
    handle: ({ caller, project_id, params, body, claim }) =>
      answerOnce(store, claim, async (tx) => {
        const row = await findForUpdate(tx, project_id, params.subscriber_id)
        const added = await choices.unsubscribeSubscriber(tx, secrets, caller, row, body)
        return choices.shownUnsubscribe(added)
      }),
  }),
  route({
    ...by("POST", `${ONE}/resubscribe`),
    summary: "Allow a channel, or one category of it, again",
    description:
      "Also removes the suppressions that unsubscribing made. A bounced address stays suppressed. Without a category it is all of the channel.",
    body: Choice,
    example: { channel: "email", category: "newsletter" },
    response: Resubscribed,
    errors: ["subscriber_not_found"],
    handle: async ({ caller, project_id, params, body }) => ({
      data: await store.tx(async (tx) => {
        const row = await findForUpdate(tx, project_id, params.subscriber_id)
        return { removed: await choices.resubscribeSubscriber(tx, secrets, caller, row, body) }
      }),
    }),
  }),
]

const unsubscribesOf = (db: Reader, subscriber_id: string) =>
  rowList(db, unsubscribes, {
    of: eq(unsubscribes.subscriber_id, subscriber_id),
    missing: () => fail("not_found", "There is no such unsubscribe."),
  })

const chainRoutes = ({ store, cursors, secrets }: ConsentParts): AnyRoute[] => [
  route({
    ...by("GET", `${ONE}/consents`),
    summary: "List the consent records of a subscriber, newest first",
    description:
      "Records are only added. Each one has the hash of the one before, so that a change or a gap shows.",
    query: PAGE,
    response: Consent,
    errors: ["subscriber_not_found"],
    handle: async (call) => {
      const { project_id, params } = call
      const subscriber = await find(store.read, project_id, params.subscriber_id)
      return listPage(call, cursors, listConsents(store.read, subscriber), shownConsent)
    },
  }),
  route({
    ...by("POST", `${ONE}/consents`, 201),
    summary: "Add a consent record",
    description:
      "It records what a person allowed or forbade, and how. It does not change what is sent.",
    body: NewConsent,
    example: { channel: "email", action: "granted", source: "import", proof: "Form of 2026-11-21" },
    response: Consent,
    errors: ["subscriber_not_found"],
    idempotent: true,
    handle: ({ project_id, params, body, claim }) =>
      answerOnce(store, claim, async (tx) => {
        const subscriber = await findForUpdate(tx, project_id, params.subscriber_id)
        return shownConsent(await addConsent(tx, secrets, subscriber, body))
      }),
  }),
]

const LONGEST_REASON = 500
const LONGEST_PROOF = 2000

const SOURCES = ["api", "page", "one_click", "sms", "import"] as const

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

const Unsubscribe = t.Object(
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

const Choice = t.Object({
  channel: channel(),
  category: category(),
  reason: t.Optional(orNull(nameText(LONGEST_REASON))),
})

const Resubscribed = t.Object(
  { removed: count(1, "Unsubscribes and suppressions that were removed.") },
  { title: "Resubscribed" },
)

const HASH = "c1a5298f939e87e8f962a5edfc206918d1e4f5e0d6a2f9c3b7a80f6e5d4c3b2a"

const Consent = t.Object(
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

const NewConsent = t.Object({
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
