import { fail } from "../core/errors"
import * as passwords from "../identity/passwords"
import type { SessionClient, SessionReply, Sessions } from "../identity/sessions"
import * as users from "../identity/users"
import type { Store } from "../store/store"
import { accept, open } from "./invitations"

/** Which people may sign up: none, people with an invitation, or all. */
export type SignUp = "closed" | "invite" | "open"

interface NewPerson {
  email: string
  password: string
  name: string | null
  invitation_token: string | undefined
}

/** Throws 403 `forbidden`. */
export function requireSignUp(sign_up: SignUp, is_invited: boolean): void {
  if (sign_up === "open" || (sign_up === "invite" && is_invited)) return
  const text =
    sign_up === "invite"
      ? "You need an invitation to sign up on this instance. Ask an owner of an account for one."
      : "Nobody can sign up on this instance. Ask its operator for a user."
  fail("forbidden", text, { reason: `sign_up_${sign_up}` })
}

/**
 * A new user with a session. An invitation makes the person a member at once; it is for its own
 * address only. Throws 403 `forbidden`, 404 for an invitation that is not valid, 409 `conflict`,
 * 422 `weak_password`.
 */
export async function signUp(
  { store, sessions }: { store: Store; sessions: Pick<Sessions, "start"> },
  { password, invitation_token, ...person }: NewPerson,
  client: SessionClient,
): Promise<SessionReply> {
  // First of all: an invented invitation must not tell whether an address has a user.
  if (invitation_token !== undefined) await open(store.read, invitation_token)
  const password_hash = await passwords.hashNew(password)
  return store.tx(async (tx) => {
    const user = await users.create(tx, { ...person, password_hash, operator: false })
    if (invitation_token !== undefined) {
      await accept(tx, invitation_token, user, users.asUser(user, client.ip))
    }
    return sessions.start(tx, user, client)
  })
}
