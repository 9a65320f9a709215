import { countryPrefix } from "../lib/phone"
import type { ConfigRow } from "../providers/tables"
import { allows, type SmsSettings } from "./providers/provider"

/**
 * The country prefix under which a text to this number is limited (`tenancy/country-limit.ts`). Undefined where the
 * text goes to `log` first, or where an enabled configuration lists its country. `configs`: in the order of asking.
 */
export function limitedCountry(
  to: string,
  configs: readonly Pick<ConfigRow, "provider" | "settings">[],
): string | undefined {
  const first = configs.find(({ settings }) => allows(settings, to))
  if (!first || first.provider === "log") return undefined
  const lists = ({ allowed_countries = [] }: SmsSettings) =>
    allowed_countries.some((prefix) => to.startsWith(prefix))
  const is_listed = configs.some(({ settings }) => lists(settings))
  return is_listed ? undefined : countryPrefix(to)
}
