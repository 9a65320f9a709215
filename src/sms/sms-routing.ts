import { fail, invalid } from "../core/errors"
import { routing } from "../providers/routing"
import type { ConfigRow } from "../providers/tables"
import type { Reader } from "../store/store"
import { LOG_SENDER } from "./providers/log"
import { allows, type SmsSettings, senderFor } from "./providers/provider"

/** The provider whose texts never leave the server, and which the sandbox always takes. */
export const LOG = "log"

/** Which configurations may take the texts of a project: in their order; in the sandbox it is `log` alone. */
export interface SmsRouting {
  is_sandbox: boolean
  rows: Pick<ConfigRow, "provider" | "settings">[]
}

const SANDBOX: SmsRouting = { is_sandbox: true, rows: [{ provider: LOG, settings: {} }] }

/** Throws 400 `sms_not_configured` where nothing can deliver a text. */
export async function smsRouting(
  db: Reader,
  { project_id, sandbox }: { project_id: string; sandbox: boolean },
): Promise<SmsRouting> {
  if (sandbox) return SANDBOX
  const rows = await routing(db, "sms_provider", project_id, { recent: true })
  return rows.length > 0
    ? { is_sandbox: false, rows }
    : fail("sms_not_configured", NOT_CONFIGURED, { channel: "sms" })
}

const NOT_CONFIGURED =
  "The project has no provider of texts. Add one with `belfry providers set`, or set sms.provider on the server."

export const settingsOf = ({ settings }: Pick<ConfigRow, "settings">): SmsSettings => settings

/** The configuration that takes a text to this number first; undefined where none may. */
export const firstAllowing = ({ rows }: Pick<SmsRouting, "rows">, to: string) =>
  rows.find((row) => allows(settingsOf(row), to))

/** The configuration that takes a text to this number first. Throws 422, reason `country_not_allowed`. */
export const requireAllowed = (all: SmsRouting, to: string, field = "to") =>
  firstAllowing(all, to) ??
  (() => {
    throw invalid(field, "country_not_allowed", NOT_ALLOWED, {
      field,
      reason: "country_not_allowed",
    })
  })()

const NOT_ALLOWED =
  "No provider of this project may send to this country. Add its prefix to allowed_countries of one."

/** The sender that the text shows as long as no other configuration takes it. */
export const expectedSender = (
  row: Pick<ConfigRow, "provider" | "settings"> | undefined,
  to: string,
): string | null =>
  row ? (senderFor(settingsOf(row), to) ?? (row.provider === LOG ? LOG_SENDER : null)) : null
