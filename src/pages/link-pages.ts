import { ApiError } from "../core/errors"
import { ownerOf, reset } from "../identity/password-recovery"
import * as passwords from "../identity/passwords"
import type { SignInParts } from "../identity/sign-in"
import { identify } from "../identity/sign-in"
import * as users from "../identity/users"
import { asUser } from "../identity/users"
import { isLonger } from "../lib/text"
import type { Store, Tx } from "../store/store"
import { accept, type OpenInvitation, open } from "../tenancy/invitations"
import { requireSignUp, type SignUp } from "../tenancy/sign-up"
import { html } from "./html"
import {
  complaint,
  field,
  PASSWORD_RULES,
  proofFields,
  smallPage,
  timeText,
  wayTo,
} from "./small-page"

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
  const fields = user
    ? proofFields()
    : html`${field({
        name: "name",
        label: "Your name",
        autocomplete: "name",
        value: form.name ?? "",
      })}${field({
        name: "password",
        label: "Choose a password",
        type: "password",
        autocomplete: "new-password",
        hint: PASSWORD_RULES,
      })}`
  const content = html`
<p>You are invited as ${CALLED[role]}, with the address <strong>${email}</strong>. The invitation ends at ${timeText(expires_at)}.</p>
${complaint(problem?.message)}
<form method="post">
<input type="hidden" name="email" autocomplete="username" value="${email}">
${fields}
<button class="go">${user ? "Sign in and join" : "Join"}</button>
</form>`
  return smallPage(`Join ${account_name}`, content, problem?.status)
}

/** Makes the person a member, once. A person with a user proves their identity first. */
export async function acceptForm(
  parts: InvitationPageParts,
  token: string,
  form: InvitationForm,
  ip: string,
): Promise<Response> {
  const seen = await open(parts.store.read, token)
  try {
    const who = await (seen.user ? returning(parts, seen, form, ip) : newcomer(parts, seen, form))
    await parts.store.tx(async (tx) => {
      const user = await who(tx)
      await accept(tx, token, user, asUser(user, ip))
    })
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === "not_found") throw error
    return invitationPage(seen, form, error)
  }
  const command = `belfry login ${parts.link_base() || "ADDRESS"}`
  const content = html`<p>You can sign in now.</p>${waysIn(command)}`
  return smallPage(`You are in ${seen.account_name}`, content)
}

const waysIn = (command: string) => html`
${wayTo("/sign-in", "Sign in")}
<p class="hint">Or in your terminal:</p>
<p class="command"><code>${command}</code></p>`

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

const TITLE = "Choose a new password"

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

function resetPage(problem?: ApiError): Response {
  const password = field({
    name: "new_password",
    label: "New password",
    type: "password",
    autocomplete: "new-password",
    hint: PASSWORD_RULES,
  })
  const content = html`
<p>When you save it, all your sessions end.</p>
${complaint(problem?.message)}
<form method="post">
${password}
<button class="go">Save</button>
</form>`
  return smallPage(TITLE, content, problem?.status)
}

export async function resetForm(
  { store, link_base }: PasswordPageParts,
  token: string,
  { new_password = "" }: PasswordForm,
  ip: string,
): Promise<Response> {
  try {
    await reset(store, { token, new_password, ip })
  } catch (error) {
    const is_mendable = error instanceof ApiError && error.code !== "otp_expired"
    if (!is_mendable) throw error
    return resetPage(error)
  }
  const command = `belfry login ${link_base() || "ADDRESS"}`
  const content = html`<p>Sign in with the new password.</p>${waysIn(command)}`
  return smallPage("Your password was changed", content)
}
