import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { now } from "../core/time"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import type { EndUserRow } from "./end-users"
import type { MailType } from "./environment-settings"
import type { AuthEnvironment } from "./environments"
import type { UserClient } from "./sign-in"
import { deviceOf } from "./user-devices"

export interface Notice {
  accept(tx: Tx): Promise<void>
}

/**
 * A mail that tells a user what was done to their account, and from where. It holds nothing up: what it tells of
 * happens also where no mail can leave, and where the user has no address.
 */
export async function prepareNotice(
  { mail }: Pick<AuthParts, "mail">,
  environment: AuthEnvironment,
  { email, name, locale }: Pick<EndUserRow, "email" | "name" | "locale">,
  { type, client, new_email }: { type: MailType; client: UserClient; new_email?: string },
): Promise<Notice> {
  if (!email) return SILENCE
  const device = deviceOf(client.user_agent)
  const variables = { device, ip: client.ip, time: now(), new_email }
  const to = { email, name, locale }
  const letter = await unlessRefused(mail.prepare(environment, { type, to, variables }))
  if (!letter) return SILENCE
  return { accept: async (tx) => void (await unlessRefused(letter.accept(tx))) }
}

const SILENCE: Notice = { accept: async () => {} }

async function unlessRefused<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    log.warn("a notice for an end user was not sent", { reason: error.message })
    return undefined
  }
}
