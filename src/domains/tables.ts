import { bool, id, index, json, ref, table, text, time, uniqueIndex } from "../store/columns"
import { life } from "../store/life"

export type DomainStatus = "pending" | "verified" | "failed"

type RecordStatus = "pending" | "verified" | "mismatch" | "missing"

export const RECORD_PURPOSES = [
  "verification",
  "spf",
  "dkim",
  "dmarc",
  "return_path",
  "tracking",
  "receiving",
] as const

export type RecordPurpose = (typeof RECORD_PURPOSES)[number]

export interface ServerAnswer {
  /** The server's name, or its address where it has none. */
  server: string
  /** `NOERROR`, `NXDOMAIN`, `SERVFAIL` …, or why there was no answer. */
  answer: string
  values: string[]
  /** What the name is an alias of, where it is one. */
  alias: string | null
}

/** Where the first wrong character is, in both texts. */
export interface Difference {
  at: number
  expected: string
  found: string
}

export interface RecordCheck {
  status: RecordStatus
  /** Each value once, whichever server gave it. */
  found: string[]
  hint: string | null
  /** A name for the mistake that the hint explains. */
  mistake: string | null
  difference: Difference | null
  answers: ServerAnswer[]
  /** Since when a verified domain lacks it. */
  missing_since?: string
}

/** The provider's own verification of the domain; `not_required` where it has none. */
export type ProviderStanding = "not_required" | "pending" | "success" | "failed"

/** A record by which a provider signs with a key of its own: `<selector>._domainkey` leads there. */
export interface DkimAlias {
  selector: string
  target: string
}

/** Checks on request: when the current hour began, and how many there were since. */
export interface ChecksQuery {
  last_at: number
  hour_began_at: number
  count: number
}

/** Records are named by purpose; a DKIM record that a rotation waits for by `dkim:<selector>`. */
export type RecordChecks = Partial<Record<RecordPurpose | `dkim:${string}`, RecordCheck>>

/** A name that a project wants to send from, and what the last check of its records saw. */
export const domains = table(
  "domains",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    /** A-labels, lower case, without a dot at the end. */
    domain: text().notNull(),
    status: text<DomainStatus>().notNull(),
    verification_token: text().notNull(),
    receiving: bool().notNull(),
    /** One label or several, relative to the domain. */
    tracking_subdomain: text(),
    return_path: text().notNull(),
    records: json<RecordChecks>().notNull(),
    provider_identity_status: text<ProviderStanding>().notNull(),
    provider_dkim_status: text<ProviderStanding>().notNull(),
    /** What such a provider signs with, where it does; together they are the DKIM record. */
    provider_dkim: json<DkimAlias[] | null>(),
    warning: text(),
    asked: json<ChecksQuery | null>(),
    /** Since when a verified domain lacks a required record; null while it lacks none. */
    missing_since: time(),
    last_checked_at: time(),
    next_check_at: time(),
    /** When the 72 hours began in which the records have to appear, or changed ones are expected. */
    window_began_at: time().notNull(),
    verified_at: time(),
    failed_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (domain) => [
    uniqueIndex("domains_by_name").on(domain.project_id, domain.domain),
    index("domains_by_project").on(domain.project_id, domain.id),
    index("domains_of_everybody").on(domain.domain),
  ],
)
life(domains, { owner: "project", ends: "never" })

export type DkimAlgorithm = "rsa" | "ed25519"
export type DkimState = "pending" | "active" | "retired"

/** The keys of a domain: one active a kind of algorithm, at most one pending beside it. */
export const dkimKeys = table(
  "dkim_keys",
  {
    id: id(),
    project_id: ref().notNull(),
    domain_id: ref()
      .notNull()
      .references(() => domains.id, { onDelete: "cascade" }),
    selector: text().notNull(),
    algorithm: text<DkimAlgorithm>().notNull(),
    /** PKCS #8 PEM, sealed. */
    private_key: text().notNull(),
    /** The value of `p=`: base64 of what RFC 6376 3.6.1 and RFC 8463 4.2 publish. */
    public_key: text().notNull(),
    state: text<DkimState>().notNull(),
    /** When its record was first seen at every server. */
    seen_at: time(),
    /** When the record of a retired key may be removed. */
    retire_at: time(),
    created_at: time().notNull(),
  },
  (key) => [uniqueIndex("dkim_keys_by_selector").on(key.domain_id, key.selector, key.algorithm)],
)
life(dkimKeys, {
  owner: "project",
  ends: "with row",
  names: { domain_id: "domains" },
  sealed: {
    private_key: {
      what: "DKIM keys of domains",
      remedy: "`belfry domains rotate-dkim DOMAIN` for each domain, and publish the new records",
    },
  },
})
