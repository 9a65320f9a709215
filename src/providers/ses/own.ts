import type { Settings } from "../../core/config"
import type { Secrets } from "../../core/secrets"
import { callbackHash, callbackToken, INSTANCE } from "../callback-token"
import type { SesAccess } from "../credentials"
import type { OwnSes } from "../place"

/** The instance's own account at SES; undefined where `delivery.provider` is another. */
export function ownAccess(settings: Settings): SesAccess | undefined {
  if (settings["delivery.provider"] !== "ses") return undefined
  const configuration_set = settings["providers.ses.configuration_set"]
  return {
    region: settings["providers.ses.region"] ?? "",
    access_key_id: settings["providers.ses.access_key_id"] ?? "",
    secret_access_key: settings["providers.ses.secret_access_key"] ?? "",
    ...(configuration_set !== null && { configuration_set }),
  }
}

export const ownSes = (secrets: Secrets, { access_key_id }: SesAccess): OwnSes => ({
  callback_hash: callbackHash(callbackToken(secrets, INSTANCE)),
  credentials_id: secrets.mac("ses credentials", access_key_id).toString("base64url"),
})

/** Where SNS is to send what SES tells of the instance's own mail. */
export const ownCallback = (secrets: Secrets, base_url: string): string =>
  `${base_url}/v1/callbacks/email/ses/${callbackToken(secrets, INSTANCE)}`
