import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage } from "../http/page"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import { rowList } from "../store/rows"
import type { Reader } from "../store/store"
import { find, findForUpdate } from "../subscribers/find-subscriber"
import { unsubscribes } from "../subscribers/tables"
import { addConsent, listConsents, shownConsent } from "./consent-chain"
import * as schemas from "./schemas"
import * as choices from "./subscriber-choices"

interface ConsentParts extends ListParts {
  secrets: Secrets
}

const ONE = "/v1/subscribers/{subscriber_id}" as const

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
    query: schemas.unsubscribeQuery,
    response: schemas.Unsubscribe,
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
    body: schemas.Choice,
    example: { channel: "email", category: "newsletter", reason: "Asked by telephone." },
    response: schemas.Unsubscribe,
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
      "Suppressions that unsubscribing made go too. A bounced address stays suppressed. Without a category it is all of the channel.",
    body: schemas.Choice,
    example: { channel: "email", category: "newsletter" },
    response: schemas.Resubscribed,
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
    query: schemas.consentQuery,
    response: schemas.Consent,
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
    body: schemas.NewConsent,
    example: { channel: "email", action: "granted", source: "import", proof: "Form of 2026-11-21" },
    response: schemas.Consent,
    errors: ["subscriber_not_found"],
    idempotent: true,
    handle: ({ project_id, params, body, claim }) =>
      answerOnce(store, claim, async (tx) => {
        const subscriber = await findForUpdate(tx, project_id, params.subscriber_id)
        return shownConsent(await addConsent(tx, secrets, subscriber, body))
      }),
  }),
]
