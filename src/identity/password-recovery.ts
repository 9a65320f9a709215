import { fail } from "../core/errors"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { issueLink, openLink, takeLink } from "../sign-in/links"
import { hashNext } from "../sign-in/passwords"
import type { Reader, Store, Tx } from "../store/store"
import { revokeAll } from "./sessions"
import { type ConsoleMail, linkText } from "./system-mail"
import { passwordHistory, passwordResets } from "./tables"
import * as users from "./users"

const RESET_SECONDS = 3600
const MOST_ATTEMPTS = 10

interface ForgottenPassword {
  email: string
}

/**
 * The work behind "forgot password". A job, because the answer must neither say nor show by its
 * time whether the address has a user.
 */
export const passwordForgotten: JobKind<ForgottenPassword> = {
  name: "session.password_forgotten",
  schedule: (attempt) => (attempt < MOST_ATTEMPTS ? 10 * attempt : undefined),
}

export const forget = (tx: Tx, email: string) =>
  enqueue(tx, passwordForgotten, { payload: { email }, project_id: null })

/** Mails a token that works once and for an hour; for an unknown address it does nothing. */
export const sendReset = (
  store: Store,
  { mail, link_base }: ConsoleMail,
): JobHandler<ForgottenPassword> => ({
  async run({ email }) {
    const user = await users.byEmail(store.read, email)
    if (user?.status !== "active") return {}
    return {
      async done(tx) {
        const kept = { kind: "reset", seconds: RESET_SECONDS } as const
        const token = await issueLink(tx, passwordResets, kept, { user_id: user.id })
        const text = letter(linkText(link_base(), `/password-reset/${token}`))
        const subject = "Reset your Belfry password"
        await mail.send(tx, { to: user.email, subject, text, kind: "password_reset" })
      },
    }
  },
})

const letter = (link: string) =>
  [
    "We received a request to reset the password of your Belfry user.",
    `Open this page within an hour to choose a new password:\n${link}`,
    "The link works once. If you did not ask for a new password, do nothing. Your password stays as it is.",
  ].join("\n\n")

/** Whose password this token may set. Throws 422 `otp_expired` for an old, used or unknown one. */
export async function ownerOf(db: Reader, token: string): Promise<users.UserRow> {
  const reset = await openLink(db, passwordResets, token)
  return reset ? users.find(db, reset.user_id) : expired()
}

const expired = () =>
  fail("otp_expired", "This link has expired or was used already. Ask for a new one.")

/**
 * Sets a new password with the token of the mail. Every session of the user ends, also that of an
 * intruder. Throws 422 `otp_expired`, `weak_password`, `password_recently_used`.
 */
export async function reset(
  store: Store,
  { token, new_password, ip }: { token: string; new_password: string; ip: string },
): Promise<void> {
  const { id } = await ownerOf(store.read, token)
  const password_hash = await hashNext(store.read, historyOf(id), new_password)
  await store.tx(async (tx) => {
    if (!(await takeLink(tx, passwordResets, token))) expired()
    const user = await users.findForUpdate(tx, id)
    await users.setPassword(tx, id, password_hash)
    await revokeAll(tx, id)
    await users.recordOwn(tx, user, ip, "password.reset")
  })
}

const historyOf = (user_id: string) => ({ table: passwordHistory, user_id })

/** With the present password proven: sets a new one and ends the user's other sessions. */
export async function change(
  store: Store,
  {
    user,
    session_id,
    ...wanted
  }: { user: users.UserRow; session_id: string; new_password: string; ip: string },
): Promise<void> {
  const { new_password, ip } = wanted
  const password_hash = await hashNext(store.read, historyOf(user.id), new_password)
  await store.tx(async (tx) => {
    const now_is = await users.findForUpdate(tx, user.id)
    if (now_is.password_hash !== user.password_hash) {
      fail(
        "invalid_current_password",
        "Another session changed the password at the same time. Try again with the new one.",
      )
    }
    await users.setPassword(tx, user.id, password_hash)
    await revokeAll(tx, user.id, session_id)
    await users.recordOwn(tx, user, ip, "password.changed")
  })
}
