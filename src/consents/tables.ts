import type { AudienceChannel } from "../lib/preferences"
import { id, index, int, ref, table, text, time, uniqueIndex } from "../store/columns"
import { life } from "../store/life"

/**
 * The links of the mail that one address gets of one kind. The mail carries their tokens, and stays in
 * mailboxes for years: a row goes only with its project.
 */
export const unsubscribeLinks = table(
  "unsubscribe_links",
  {
    /** The 128 bits of the token. */
    id: id(),
    project_id: ref().notNull(),
    /** In the form in which addresses compare. */
    address: text().notNull(),
    scope_type: text<ScopeType>().notNull(),
    /** Null for `broadcast`, which means all broadcasts of the project. */
    scope_key: text(),
    created_at: time().notNull(),
  },
  (link) => [index("unsubscribe_links_by_address").on(link.project_id, link.address, link.id)],
)
// Mail in mailboxes carries these links for years.
life(unsubscribeLinks, {
  owner: "project",
  ends: "never",
  personal: { found_by: { address: "address" } },
})

/** The kinds of mail that a recipient can end alone. */
export const CONSENT_SCOPES = ["category", "topic", "broadcast"] as const

export type ScopeType = (typeof CONSENT_SCOPES)[number]

/**
 * What people allowed and forbade, and by which way. Rows are only added. Each one has the hash of the
 * one before, so that a change or a gap shows.
 */
export const consents = table(
  "consents",
  {
    id: id(),
    project_id: ref().notNull(),
    subscriber_id: ref(),
    /** The chain of an address that belongs to no subscriber, in the form in which addresses compare. */
    address: text(),
    /** The place in the chain, from 1. */
    number: int().notNull(),
    channel: text<AudienceChannel>().notNull(),
    /** Null where the whole channel is meant. */
    scope_type: text<ScopeType>(),
    scope_key: text(),
    action: text<"granted" | "withdrawn" | "erased">().notNull(),
    source: text<ConsentSource>().notNull(),
    /** What shows that it was so. */
    proof: text(),
    /** A keyed hash: it tells whether two came from one address, and not from which. */
    ip_hash: text(),
    created_at: time().notNull(),
    prev_hash: text(),
    hash: text().notNull(),
  },
  (consent) => [
    uniqueIndex("consents_by_address").on(consent.project_id, consent.address, consent.number),
    uniqueIndex("consents_by_subscriber").on(
      consent.project_id,
      consent.subscriber_id,
      consent.number,
    ),
    index("consents_by_project").on(consent.project_id, consent.id),
  ],
)
// What people allowed and forbade has to be shown for as long as the project sends.
life(consents, {
  owner: "project",
  ends: "never",
  personal: { found_by: { subscriber_id: "subscriber_id", address: "address" } },
})

export type ConsentSource = "api" | "page" | "one_click" | "sms" | "import"
