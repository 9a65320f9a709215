import type { Settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import type { SendRules } from "../emails/prepare"
import type { MessageWatchers } from "../events/message-watchers"
import type { Cursors } from "../http/page"
import { Throttle } from "../sign-in/throttle"
import type { Store } from "../store/store"
import { UserTokens } from "./access-tokens"
import { AuthMail } from "./mails"
import { userThrottles } from "./tables"
import { AuthTexts } from "./texts"

interface AuthGround {
  store: Store
  secrets: Secrets
  workers: Workers
  cursors: Cursors
  /** The public address of this instance; asked at each use, since a free port is known late. */
  base_url: () => string
  rules: SendRules
  watching: MessageWatchers
  settings: Pick<Settings, `auth.${string}` & keyof Settings>
}

/** What signing end users in needs. */
export interface AuthParts extends AuthGround {
  tokens: UserTokens
  /** Of end users alone: guesses at people of the console are counted elsewhere. */
  throttle: Throttle
  mail: AuthMail
  texts: AuthTexts
}

/** Wires what is of end users alone. */
export const openAuth = (ground: AuthGround): AuthParts => ({
  ...ground,
  tokens: new UserTokens(ground),
  throttle: new Throttle(ground.store, ground.secrets, userThrottles),
  mail: new AuthMail(ground),
  texts: new AuthTexts(ground),
})
