import { optional, webUrl } from "./config-kinds"

/** The services that sign-ins of end users ask. */
export const authKeys = {
  "auth.captcha.endpoint": optional(
    webUrl,
    "URL that checks captchas. Without it, the one of the environment's service is used.",
  ),
}
