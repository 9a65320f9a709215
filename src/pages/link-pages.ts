import { ApiError } from "../core/errors"
import { ownerOf, reset } from "../identity/password-recovery"
import * as passwords from "../identity/passwords"
import { identify, type SignInParts } from "../identity/sign-in"
import * as users from "../identity/users"
import { isLonger } from "../lib/text"
import type { Store, Tx } from "../store/store"
import {
  accept,
  type OpenInvitation,
  open,
  requireSignUp,
  type SignUp,
} from "../tenancy/invitations"
import { html } from "./html"
import { formPage, newPassword, orForm, PROOF, smallPage, timeText } from "./small-page"

const MOST_NAME_CHARACTERS = 200

export interface InvitationPageParts extends Omit<SignInParts, "sessions"> {
  link_base: () => string
  sign_up: SignUp
}

export type InvitationForm = Partial<Record<"name" | "password" | "code", string>>

/** Looking changes nothing: mail scanners follow links. Throws 404 for a token that is not valid. */
export async function showInvitation({ store }: InvitationPageParts, token: string) {
  return invitationPage(await open(store.read, token), {})
}

const CALLED = {
  owner: "an owner",
  admin: "an admin",
  billing_admin: "a billing admin",
  member: "a member",
}

function invitationPage(seen: OpenInvitation, form: InvitationForm, problem?: ApiError): Response {
  const { invitation, account_name, user } = seen
  const { email, role, expires_at } = invitation
  const name = { name: "name", label: "Your name", autocomplete: "name", value: form.name ?? "" }
  return formPage({
    title: `Join ${account_name}`,
    about: html`You are invited as ${CALLED[role]}, with the address <strong>${email}</strong>. The invitation ends at ${timeText(expires_at)}.`,
    problem,
    unseen: html`<input type="hidden" name="email" autocomplete="username" value="${email}">`,
    fields: user ? PROOF : [name, newPassword("password", "Choose a password")],
    go: user ? "Sign in and join" : "Join",
  })
}

/** Makes the person a member, once. A person with a user proves their identity first. */
export async function acceptForm(
  parts: InvitationPageParts,
  token: string,
  form: InvitationForm,
  ip: string,
): Promise<Response> {
  const seen = await open(parts.store.read, token)
  return orForm(
    async () => {
      const who = await (seen.user ? returning(parts, seen, form, ip) : newcomer(parts, seen, form))
      await parts.store.tx(async (tx) => {
        const user = await who(tx)
        await accept(tx, token, user, users.asUser(user, ip))
      })
      return wayIn(parts, `You are in ${seen.account_name}`, "You can sign in now.")
    },
    (problem) => invitationPage(seen, form, problem),
    "not_found",
  )
}

function wayIn({ link_base }: PasswordPageParts, title: string, text: string): Response {
  const content = html`<p>${text}</p>
<p><a class="go" href="/sign-in">Sign in</a></p>
<p class="hint">Or in your terminal:</p>
<p class="command"><code>belfry login ${link_base() || "ADDRESS"}</code></p>`
  return smallPage(title, content)
}

type Who = (tx: Tx) => Promise<users.UserRow>

const returning = (
  parts: InvitationPageParts,
  { invitation }: OpenInvitation,
  { password = "", code = "" }: InvitationForm,
  ip: string,
): Promise<Who> => identify(parts, { email: invitation.email, password, code }, ip)

async function newcomer(
  { sign_up }: InvitationPageParts,
  { invitation }: OpenInvitation,
  { name = "", password = "" }: InvitationForm,
): Promise<Who> {
  requireSignUp(sign_up, true)
  const plain = name.trim()
  if (
    plain === "" ||
    isLonger(plain, MOST_NAME_CHARACTERS) ||
    /[\p{Cc}\u2028\u2029]/u.test(plain)
  ) {
    throw new ApiError(
      "validation_error",
      `Enter your name in one line, with at most ${MOST_NAME_CHARACTERS} characters.`,
    )
  }
  const password_hash = await passwords.hashNew(password)
  const wanted = { email: invitation.email, name: plain, password_hash, operator: false }
  return (tx) => users.create(tx, wanted)
}

export interface PasswordPageParts {
  store: Store
  link_base: () => string
}

export type PasswordForm = Partial<Record<"new_password", string>>

/** Looking changes nothing. Throws 422 `otp_expired` for a token that is not valid. */
export async function showReset({ store }: PasswordPageParts, token: string): Promise<Response> {
  await ownerOf(store.read, token)
  return resetPage()
}

const resetPage = (problem?: ApiError): Response =>
  formPage({
    title: "Choose a new password",
    about: html`When you save it, all your sessions end.`,
    problem,
    fields: [newPassword("new_password", "New password")],
    go: "Save",
  })

export const resetForm = (
  parts: PasswordPageParts,
  token: string,
  { new_password = "" }: PasswordForm,
  ip: string,
): Promise<Response> =>
  orForm(
    async () => {
      await reset(parts.store, { token, new_password, ip })
      return wayIn(parts, "Your password was changed", "Sign in with the new password.")
    },
    resetPage,
    "otp_expired",
  )
