import { fail, invalid } from "../core/errors"
import { countryPrefix } from "../lib/phone"
import { routing } from "../providers/routing"
import type { ConfigRow } from "../providers/tables"
import type { Reader } from "../store/store"
import { LOG_SENDER } from "./providers/log"
import { allows, type SmsSettings, senderFor } from "./providers/provider"

/** The provider whose texts never leave the server, and which the sandbox always takes. */
export const LOG = "log"

/** A configuration that may take the texts of a project. Several stand in the order of asking. */
export type SmsRoute = Pick<ConfigRow, "provider" | "settings">

/** Those of a project; in the sandbox it is `log` alone. Throws 400 `sms_not_configured` where there is none. */
export async function smsRouting(
  db: Reader,
  { project_id, sandbox }: { project_id: string; sandbox: boolean },
): Promise<SmsRoute[]> {
  if (sandbox) return [{ provider: LOG, settings: {} }]
  const routes = await routing(db, "sms_provider", project_id, { recent: true })
  return routes.length > 0 ? routes : fail("sms_not_configured", NOT_CONFIGURED, { channel: "sms" })
}

const NOT_CONFIGURED =
  "The project has no provider of texts. Add one with `belfry providers set`, or set sms.provider on the server."

/** The configuration that takes a text to this number first; undefined where none may. */
export const firstAllowing = (routes: readonly SmsRoute[], to: string): SmsRoute | undefined =>
  routes.find(({ settings }) => allows(settings, to))

/** The configuration that takes a text to this number first. Throws 422, reason `country_not_allowed`. */
export function requireAllowed(routes: readonly SmsRoute[], to: string): SmsRoute {
  const first = firstAllowing(routes, to)
  if (first) return first
  const reason = "country_not_allowed"
  throw invalid("to", reason, NOT_ALLOWED, { field: "to", reason })
}

const NOT_ALLOWED =
  "No provider of this project may send to this country. Add its prefix to allowed_countries of one."

/**
 * The country prefix under which a text to this number is limited (`tenancy/country-limit.ts`). Undefined where the
 * text goes to `log` first, or where an enabled configuration lists its country.
 */
export function limitedCountry(routes: readonly SmsRoute[], to: string): string | undefined {
  const first = firstAllowing(routes, to)
  if (!first || first.provider === LOG) return undefined
  const lists = ({ allowed_countries = [] }: SmsSettings) =>
    allowed_countries.some((prefix) => to.startsWith(prefix))
  return routes.some(({ settings }) => lists(settings)) ? undefined : countryPrefix(to)
}

/** The sender that the text shows as long as no other configuration takes it. */
export const expectedSender = (route: SmsRoute | undefined, to: string): string | null =>
  route ? (senderFor(route.settings, to) ?? (route.provider === LOG ? LOG_SENDER : null)) : null
