import { ApiError, invalid } from "../core/errors"
import { log } from "../core/log"
import { NetError, request } from "../core/net"
import type { Call } from "../http/route"
import { objectIn } from "../lib/text"
import type { AuthParts } from "./auth-parts"
import { contextOf } from "./environment-changes"
import type { CAPTCHA_PROVIDERS } from "./environment-settings"
import type { AuthEnvironment } from "./environments"

type CaptchaProvider = (typeof CAPTCHA_PROVIDERS)[number]

/** All three take the same form and give the same answer. */
const SERVICES: Record<CaptchaProvider, string> = {
  turnstile: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
  hcaptcha: "https://api.hcaptcha.com/siteverify",
  recaptcha: "https://www.google.com/recaptcha/api/siteverify",
}

const TIMEOUT_MS = 5000
const MOST_BYTES = 16_384
const RETRY_SECONDS = 10

type CaptchaCall = Pick<Call<{ captcha_token?: string | undefined }>, "caller" | "body" | "ip">

type CaptchaParts = Pick<AuthParts, "secrets"> & {
  settings: Pick<AuthParts["settings"], "auth.captcha.endpoint">
}

/**
 * Asks the service of the environment whether a person is there, where an app calls and the environment has a captcha.
 * Not within a transaction. Throws 422 `validation_error` with the field `captcha_token`, 503 while the service does
 * not answer.
 */
export async function requireCaptcha(
  { secrets, settings }: CaptchaParts,
  environment: AuthEnvironment,
  { caller, body: { captcha_token }, ip }: CaptchaCall,
): Promise<void> {
  const { captcha_secret } = environment
  const { captcha } = environment.settings
  if (!captcha || caller.kind !== "app") return
  // The seal is lost where a database was restored without its key.
  if (captcha_secret === null) throw unavailable()
  if (!captcha_token) throw invalid("captcha_token", "captcha", "This environment needs a captcha.")
  const secret = secrets.open(captcha_secret, contextOf(environment.id))
  const asked = { secret, response: captcha_token, remoteip: ip }
  const endpoint = settings["auth.captcha.endpoint"]
  const allow_private = endpoint === null ? [] : [new URL(endpoint).hostname]
  const url = endpoint ?? SERVICES[captcha.provider]
  if (await isPerson({ url, allow_private }, new URLSearchParams(asked).toString())) return
  throw invalid("captcha_token", "captcha", "The captcha was refused. Show it again.")
}

async function isPerson(
  service: { url: string; allow_private: string[] },
  body: string,
): Promise<boolean> {
  const headers = { "content-type": "application/x-www-form-urlencoded" }
  const limits = { timeout_ms: TIMEOUT_MS, capture_bytes: MOST_BYTES }
  const asked = { ...service, ...limits, method: "POST", headers, body }
  const answer = await request(asked).catch((error) => {
    if (!(error instanceof NetError)) throw error
    log.warn("a captcha service did not answer", { url: service.url, error })
    throw unavailable()
  })
  const { success } = objectIn(new TextDecoder().decode(answer.body)) ?? {}
  if (typeof success !== "boolean") {
    log.warn("a captcha service gave no answer", { url: service.url, status: answer.status })
    throw unavailable()
  }
  return success
}

const unavailable = () =>
  new ApiError("service_unavailable", "The captcha cannot be checked at the moment.", {
    ...{ reason: "captcha", retry_after: RETRY_SECONDS },
  })
