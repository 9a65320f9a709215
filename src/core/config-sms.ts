import { key, oneOf, optional, webUrl } from "./config-kinds"

/** The services that send texts. */
export const smsKeys = {
  "sms.provider": optional(
    oneOf("none", "log"),
    "Provider of texts for projects that configured none: `log` simulates them, `none` refuses them. Default: `log` for `belfry up`, `none` for `belfry serve`.",
  ),
  "providers.twilio.endpoint": key(webUrl, "https://api.twilio.com", "URL of the API of Twilio."),
  "providers.vonage.endpoint": key(
    webUrl,
    "https://rest.nexmo.com",
    "URL of the SMS API of Vonage.",
  ),
  "providers.plivo.endpoint": key(webUrl, "https://api.plivo.com", "URL of the API of Plivo."),
}
