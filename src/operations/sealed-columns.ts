import { and, eq, inArray, isNotNull, like, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { keyIdOf } from "../core/secrets"
import { dkimKeys } from "../domains/tables"
import { idempotency } from "../http/tables"
import { consoleUsers, projects, refreshTokens } from "../identity/tables"
import { jobs } from "../jobs/tables"
import { mailboxMails } from "../mailbox/tables"
import { OWN_SOURCE } from "../messages/facts"
import { messageContents, messages } from "../messages/tables"
import { providerConfigs } from "../providers/tables"
import { signingKeys } from "../signing-keys/tables"
import type { Reader } from "../store/store"
import { instanceValues } from "../store/tables"
import { webhooks } from "../webhooks/tables"
import { ERASED, subscriberErased } from "./erase-subscriber"

/** A column with values that the master key seals. */
export interface SealedColumn {
  /** The primary key, by which the rows are walked. */
  key: SQLiteColumn
  column: SQLiteColumn
  /** As it was given when the value was sealed. */
  contextOf: (key: string) => string
  /** The rows that may have one; without it those whose column is not null. */
  where?: (db: Reader) => SQL | undefined
  /** For people: what it is, and what helps where the key is lost. */
  what: string
  remedy: string
  /** What goes on without the old values: they are dropped with their rows, or become null. */
  drop?: "row" | "value"
}

const ofRow = (table: string, column: string) => (key: string) => `${table}:${key}:${column}`

/** Every sealed column there is. A test fails for one that is not in this list. */
export const SEALED_COLUMNS: SealedColumn[] = [
  {
    key: refreshTokens.token_hash,
    column: refreshTokens.successor,
    contextOf: ofRow("refresh_tokens", "successor"),
    what: "sign-ins that were just renewed",
    remedy: "nothing; a repeated request signs in again",
    drop: "value",
  },
  ...(["mfa_secret", "mfa_pending"] as const).map((name) => ({
    key: consoleUsers.id,
    column: consoleUsers[name],
    contextOf: ofRow("console_users", name),
    what: name === "mfa_secret" ? "second factors" : "second factors that are being set up",
    remedy: "people sign in with their password, then run `belfry me mfa enroll`",
    drop: "value" as const,
  })),
  {
    key: instanceValues.name,
    column: instanceValues.value,
    contextOf: (name) => name,
    where: () => like(instanceValues.value, "v1.%"),
    what: "keys of the instance: access tokens, setup, the local API key, links in mail",
    remedy: "people sign in again; `belfry up --new-key` makes another local key",
    drop: "row",
  },
  {
    key: messageContents.message_id,
    column: messageContents.content,
    contextOf: ofRow("message_contents", "content"),
    where: ofOwnMail,
    what: "mail of the instance itself that waits",
    remedy: "ask for the mail again, for example with `belfry password forgot`",
    drop: "row",
  },
  {
    key: providerConfigs.id,
    column: providerConfigs.credentials,
    contextOf: ofRow("provider_configs", "credentials"),
    what: "credentials of providers",
    remedy: "`belfry providers set` with the credentials of each provider",
    drop: "value",
  },
  {
    key: idempotency.request,
    column: idempotency.answer,
    contextOf: (request) => request,
    where: () => like(idempotency.answer, "v1.%"),
    what: "answers kept for repeated requests",
    remedy: "nothing; they last one day",
    drop: "row",
  },
  {
    key: mailboxMails.id,
    column: mailboxMails.raw,
    contextOf: ofRow("mailbox_mails", "raw"),
    where: (db) => inArray(mailboxMails.project_id, hiddenProjects(db)),
    what: "mail of the instance itself in the mailbox",
    remedy: "nothing; ask for the mail again",
  },
  {
    key: dkimKeys.id,
    column: dkimKeys.private_key,
    contextOf: ofRow("dkim_keys", "private_key"),
    what: "DKIM keys of domains",
    remedy: "`belfry domains rotate-dkim DOMAIN` for each domain, and publish the new records",
  },
  {
    key: signingKeys.id,
    column: signingKeys.private_key,
    contextOf: ofRow("signing_keys", "private_key"),
    what: "keys that sign tokens of subscribers",
    remedy: "nothing; the next token gets a new key",
    drop: "row",
  },
  {
    key: jobs.id,
    column: jobs.payload,
    contextOf: () => ERASED,
    where: () => eq(jobs.name, subscriberErased.name),
    what: "erasures of subscribers that have not ended",
    remedy: "look for what is left of the person with `belfry subscribers`, and remove it",
    drop: "row",
  },
  ...(["secret", "previous_secret"] as const).map((name) => ({
    key: webhooks.id,
    column: webhooks[name],
    contextOf: ofRow("webhooks", "secret"),
    what:
      name === "secret" ? "signing secrets of webhooks" : "signing secrets that are being replaced",
    remedy: "`belfry webhooks rotate ID --now`, and give the receiver the new secret",
    ...(name === "previous_secret" && { drop: "value" as const }),
  })),
  {
    key: webhooks.id,
    column: webhooks.sealed_headers,
    contextOf: ofRow("webhooks", "headers"),
    what: "custom headers of webhooks",
    remedy: "`belfry webhooks update ID` with the headers",
    drop: "value",
  },
]

const hiddenProjects = (db: Reader) =>
  db.select({ id: projects.id }).from(projects).where(eq(projects.hidden, true))

function ofOwnMail(db: Reader) {
  const ours = inArray(messages.project_id, hiddenProjects(db))
  const own = db.select({ id: messages.id }).from(messages)
  return inArray(messageContents.message_id, own.where(and(ours, eq(messages.source, OWN_SOURCE))))
}

/** The condition of the rows that are walked. */
export const mayBeSealed = (db: Reader, { column, where }: SealedColumn): SQL | undefined =>
  and(isNotNull(column), where?.(db) ?? sql`1 = 1`)

/** The sealed text in a value of a column; undefined for a value that is not sealed. */
export function sealedIn(value: unknown): string | undefined {
  const text =
    value instanceof Uint8Array
      ? Buffer.from(value).toString("latin1")
      : typeof value === "object" && value !== null && "sealed" in value
        ? value.sealed
        : value
  return typeof text === "string" && keyIdOf(text) !== undefined ? text : undefined
}

/** The same value with another sealed text in it. */
export function withSealed(value: unknown, sealed: string): unknown {
  if (value instanceof Uint8Array) return Buffer.from(sealed)
  return typeof value === "object" && value !== null ? { ...value, sealed } : sealed
}
