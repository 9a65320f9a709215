import { asc, eq } from "drizzle-orm"
import { fail } from "../../core/errors"
import { organizational } from "../../domains/names"
import type { Reader } from "../../store/store"
import { type AuthEnvironment, environmentById, originsOf } from "../environments"
import { environments } from "../tables"

/** The site of a passkey (WebAuthn Level 3, section 4). */
export interface RelyingParty {
  id: string
  /** The pages that may ask for it, also those outside of the id's domain: its related origins. */
  origins: string[]
}

/**
 * That of an environment. In `test`, where no origin is listed, it is the page that asks, as its browser says it, so
 * that development needs no setting; a request without `Origin`, or from beside `passkey_rp_id`, has none. Throws 403
 * `forbidden` then, and where `live` lists no page.
 */
export function relyingPartyOf(environment: AuthEnvironment, request: Request): RelyingParty {
  const listed = originsOf(environment)
  const asking = request.headers.get("origin") ?? ""
  const pages = (listed === "any" ? [asking] : listed).filter(isPage)
  const [first] = pages
  const { passkey_rp_id } = environment.settings
  const id = passkey_rp_id ?? (first && organizational(hostOf(first)))
  const origins = listed === "any" ? pages.filter((page) => isWithin(page, id)) : pages
  if (id && origins.length > 0) return { id, origins }
  const text = "Passkeys work on the pages of allowed_origins. Add the origin of this page to them."
  return fail("forbidden", text, { reason: "passkey_origin" })
}

const isPage = (origin: string) => /^https?:\/\//.test(origin) && URL.canParse(origin)

const hostOf = (origin: string) => new URL(origin).hostname

const isWithin = (origin: string, id: string | undefined) =>
  hostOf(origin) === id || hostOf(origin).endsWith(`.${id}`)

/** Environments that share a host are the operator's own. */
const MOST_ENVIRONMENTS = 20

/**
 * The pages outside of a host that may ask for its passkeys (section 5.11.1), of whatever project: the host itself
 * shows them to browsers. They let nobody in, because each environment takes its own pages alone. Undefined
 * for a host that nobody named.
 */
export async function relatedOrigins(db: Reader, host: string): Promise<string[] | undefined> {
  const { id, passkey_rp_id } = environments
  const named = db.select({ id }).from(environments).where(eq(passkey_rp_id, host))
  const rows = await named.orderBy(asc(id)).limit(MOST_ENVIRONMENTS)
  const found = await Promise.all(rows.map((row) => environmentById(db, row.id)))
  const living = found.filter((environment) => environment !== undefined)
  if (living.length === 0) return undefined
  const listed = living.map(originsOf).flatMap((origins) => (origins === "any" ? [] : origins))
  return [...new Set(listed.filter((page) => isPage(page) && !isWithin(page, host)))]
}
