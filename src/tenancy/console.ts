import type { Secrets } from "../core/secrets"
import { AccessTokens } from "../identity/access-token"
import { Sessions } from "../identity/sessions"
import { Throttle } from "../identity/throttle"
import type { Store } from "../store/store"
import { Setup } from "./setup"
import type { SignUp } from "./sign-up"

export interface SessionOptions {
  store: Store
  secrets: Secrets
  /** Where the file of the setup token is put. */
  data_dir: string
  /** The public address of this instance, without a slash at the end. */
  base_url: () => string
  sign_up: SignUp
}

/** Everything that console users need, on one store. */
export function sessionParts({ data_dir, sign_up, ...options }: SessionOptions) {
  const { store, secrets, base_url } = options
  const access = new AccessTokens({ store, secrets, base_url })
  return {
    base_url,
    sign_up,
    verifyAccess: (token: string) => access.verify(token),
    sessions: new Sessions({ store, secrets, access }),
    throttle: new Throttle(store, secrets),
    setup: new Setup({ store, secrets, data_dir }),
  }
}
