import { eq } from "drizzle-orm"
import { uuidOfBytes } from "../core/ids"
import { base32, unBase32 } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { projects } from "../identity/tables"
import { comparable } from "../lib/address"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { type ScopeType, unsubscribeLinks } from "./tables"

/** The mail that a recipient can end alone: a category, a topic, or (key null) all broadcasts. */
export interface UnsubscribeScope {
  type: ScopeType
  key: string | null
}

/** The mail of one kind that one address gets from one project. */
interface UnsubscribeSubject {
  project_id: string
  address: string
  scope: UnsubscribeScope
}

/** What mail carries so that its recipient can end it. */
export interface UnsubscribeLinks {
  /** The same for every mail of the same kind to the same address. */
  tokenFor(about: UnsubscribeSubject): string
  /** Where mail to unsubscribe arrives; null where this instance receives none. */
  readonly mail_host: string | null
  /** The same links, with mail to another host. */
  at(mail_host: string | null): UnsubscribeLinks
  /** At the public address. Without one the first is an address to write to, where mail is received, and the other empty. */
  urlsOf(
    token: string,
    base: string | undefined,
  ): { unsubscribe_url: string; preferences_url: string }
  /** The header fields of unsubscribing (RFC 2369, 3.2), with one click at the public address (RFC 8058). */
  headersOf(token: string, base: string | undefined): Record<string, string>
}

interface LinkPlace {
  secrets: Pick<Secrets, "mac">
  /** Where mail to `u+<token>` arrives; null where this instance receives no mail. */
  mail_host: string | null
}

export const unsubscribeLinksAt = ({ secrets, mail_host }: LinkPlace): UnsubscribeLinks => {
  const mailTo = (token: string) =>
    mail_host === null ? undefined : `mailto:${LOCAL_PREFIX}${token}@${mail_host}`
  return {
    mail_host,
    at: (host) => unsubscribeLinksAt({ secrets, mail_host: host }),
    tokenFor: (about) => tokenFor(secrets, about),
    urlsOf: (token, base) =>
      base === undefined
        ? { unsubscribe_url: mailTo(token) ?? "", preferences_url: "" }
        : { unsubscribe_url: `${base}/u/${token}`, preferences_url: `${base}/p/${token}` },
    headersOf(token, base) {
      const page = base === undefined ? undefined : `${base}/u/${token}`
      const places = [page, mailTo(token)].filter((one) => one !== undefined)
      return {
        ...(places.length > 0 && { "List-Unsubscribe": `<${places.join(">, <")}>` }),
        ...(page !== undefined && { "List-Unsubscribe-Post": ONE_CLICK }),
      }
    },
  }
}

/** The value that RFC 8058, 3.1 fixes, in the header and in the body of the POST. */
const ONE_CLICK = "List-Unsubscribe=One-Click"

const LOCAL_PREFIX = "u+"
const TOKEN_BYTES = 16

/** What the MAC is made for. Tokens are in mail that left long ago: never change it, nor what it is made of. */
const PURPOSE = "unsubscribe link"

function tokenFor(
  secrets: Pick<Secrets, "mac">,
  { project_id, address, scope: { type, key } }: UnsubscribeSubject,
): string {
  const about = JSON.stringify([project_id, comparable(address), type, key])
  return base32(secrets.mac(PURPOSE, about).subarray(0, TOKEN_BYTES))
}

/** The row of a token, in whatever case it is written; undefined for what is no token. */
function idOfToken(token: string): string | undefined {
  const bytes = unBase32(token.toLowerCase(), TOKEN_BYTES)
  return bytes && uuidOfBytes(bytes)
}

export interface NewUnsubscribeLink extends UnsubscribeSubject {
  token: string
}

/**
 * Keeps what the tokens of accepted mail mean, in the transaction of the mail. The meaning stays when the
 * mail is deleted and when the secrets change.
 */
export async function keepLinks(tx: Tx, links: NewUnsubscribeLink[]): Promise<void> {
  const rows = new Map<string, typeof unsubscribeLinks.$inferInsert>()
  for (const { token, project_id, address, scope } of links) {
    const id = idOfToken(token)
    if (id === undefined) throw new TypeError("this is no token of an unsubscribe link")
    const words = { scope_type: scope.type, scope_key: scope.key }
    rows.set(id, { id, project_id, address, ...words, created_at: now() })
  }
  // In one order everywhere, so that no two transactions wait for each other's rows.
  const sorted = [...rows.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
  await insertLinks(tx, sorted)
}

const insertLinks = newRowInserter(unsubscribeLinks, "id")

/** A link that was followed, with the project whose mail carried it. */
export interface FoundLink {
  id: string
  project_id: string
  account_id: string
  address: string
  scope: UnsubscribeScope
  settings: (typeof projects.$inferSelect)["settings"]
}

/** The link of a token; undefined for a token that no mail carries. */
export async function lookupLink(db: Reader, token: string): Promise<FoundLink | undefined> {
  const id = idOfToken(token)
  const [found] = id === undefined ? [] : await findLink(db, { id })
  if (!found) return undefined
  const { scope_type, scope_key, ...link } = found
  return { ...link, scope: { type: scope_type, key: scope_key } }
}

const findLink = prepared({ id: unsubscribeLinks.id }, (db: Reader, slot) =>
  db
    .select({
      id: unsubscribeLinks.id,
      project_id: unsubscribeLinks.project_id,
      account_id: projects.account_id,
      address: unsubscribeLinks.address,
      scope_type: unsubscribeLinks.scope_type,
      scope_key: unsubscribeLinks.scope_key,
      settings: projects.settings,
    })
    .from(unsubscribeLinks)
    .innerJoin(projects, eq(projects.id, unsubscribeLinks.project_id))
    .where(eq(unsubscribeLinks.id, slot.id)),
)

const LOCAL_PART = /^u\+([a-z2-7]{26})$/i

/** The link that mail to this local part follows; undefined for a local part without a link. */
export async function linkOfLocalPart(db: Reader, local: string): Promise<FoundLink | undefined> {
  const [, token] = LOCAL_PART.exec(local) ?? []
  return token === undefined ? undefined : lookupLink(db, token)
}
