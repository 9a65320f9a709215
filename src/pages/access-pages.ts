import { timingSafeEqual } from "node:crypto"
import { eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis } from "../core/time"
import { identify, type ProofParts } from "../identity/console-sign-in"
import { type DeviceCodeRow, decide, waitingFor } from "../identity/device-sign-in"
import { ownerOf, reset } from "../identity/password-recovery"
import { consoleUsers } from "../identity/tables"
import * as users from "../identity/users"
import { isLonger } from "../lib/text"
import * as passwords from "../sign-in/passwords"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"
import {
  accept,
  type OpenInvitation,
  open,
  requireSignUp,
  type SignUp,
} from "../tenancy/invitations"
import { html } from "./html"
import { formPage, newPassword, orForm, PROOF, smallPage, timeText } from "./small-page"

const TITLE = "Sign in a device"
const TICKET_MILLISECONDS = 5 * 60_000

export interface AccessParts extends ProofParts {
  link_base: () => string
  sign_up: SignUp
}

/** What a form of these pages sent, by the names of its fields. */
export type AccessForm = Partial<Record<AccessField, string>>

type AccessField =
  | ("user_code" | "email" | "password" | "code" | "ticket" | "decision")
  | ("name" | "new_password")

/** Looking changes nothing: a code in the address only fills in the form. */
export const askForCode = (form: AccessForm, problem?: ApiError): Response =>
  formPage({
    title: TITLE,
    about: html`A program shows a code and asks to sign in as you. Enter the code only if you started that program yourself.`,
    problem,
    action: "/device",
    fields: [
      {
        name: "user_code",
        label: "Code that the program shows",
        autocomplete: "off",
        value: form.user_code ?? "",
        is_code: true,
      },
      {
        name: "email",
        label: "Email",
        type: "email",
        autocomplete: "username",
        value: form.email ?? "",
      },
      ...PROOF,
    ],
    go: "Continue",
  })

/** The person proves their identity, then sees the program, then decides. */
export const answerForm = (parts: ProofParts, form: AccessForm, ip: string): Promise<Response> =>
  orForm(
    async () => {
      if (form.ticket !== undefined) return settle(parts, form, ip)
      const { email = "", password = "", code = "", user_code = "" } = form
      const confirm = await identify(parts, { email, password, code }, ip)
      const device = await waitingFor(parts.store.read, parts.secrets, user_code)
      const user = await parts.store.tx(confirm)
      return question(parts.secrets, user, { user_code, device })
    },
    (problem) => askForCode(form, problem),
  )

function question(
  secrets: Secrets,
  user: users.UserRow,
  { user_code, device }: { user_code: string; device: DeviceCodeRow },
): Response {
  const until = millis() + TICKET_MILLISECONDS
  const ticket = `${user.id}.${until}.${macOf(secrets, user, until, user_code)}`
  const content = html`
<p>This program asks to act as <strong>${user.email}</strong>:</p>
<dl>
<dt>Name</dt><dd>${device.client_name}</dd>
<dt>IP address</dt><dd>${device.ip ?? "unknown"}</dd>
<dt>Asked at</dt><dd>${timeText(device.created_at)}</dd>
</dl>
<p>The program chose this name itself. If you did not start the program just now, choose Deny.</p>
<form method="post" action="/device">
<input type="hidden" name="user_code" value="${user_code}">
<input type="hidden" name="ticket" value="${ticket}">
<button class="go" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</form>`
  return smallPage(TITLE, content)
}

/**
 * Binds the second step to the person, the code and the next minutes: it is no session, and a new
 * password ends it too.
 */
function macOf(secrets: Secrets, user: users.UserRow, until: number, user_code: string): string {
  const bound = [user.id, user.password_hash, until, user_code].join("\n")
  return secrets.mac("device ticket", bound).toString("base64url")
}

async function settle({ store, secrets }: ProofParts, form: AccessForm, ip: string) {
  const { user_code = "", ticket = "", decision } = form
  const [user_id = ""] = ticket.split(".")
  const approve = decision === "approve"
  await store.tx(async (tx) => {
    const own = eq(consoleUsers.id, user_id)
    const [user] = isUuid(user_id) ? await forUpdate(tx.select().from(consoleUsers).where(own)) : []
    if (user?.status !== "active") return expired()
    requireTicket(secrets, user, { ticket, user_code })
    return decide(tx, secrets, user, { user_code, approve, ip })
  })
  const text = approve
    ? "The program signs in within a few seconds. You can close this page."
    : "You denied the sign-in of the program. You can close this page."
  return smallPage(approve ? "Approved" : "Denied", html`<p>${text}</p>`)
}

function requireTicket(
  secrets: Secrets,
  user: users.UserRow,
  { ticket, user_code }: { ticket: string; user_code: string },
) {
  const [, until = "", mac = ""] = ticket.split(".")
  const given = Buffer.from(mac)
  const right = Buffer.from(macOf(secrets, user, Number(until), user_code))
  const is_ours = given.length === right.length && timingSafeEqual(given, right)
  if (!is_ours || !(Number(until) > millis())) expired()
}

const expired = () => fail("unauthorized", "You have 5 minutes to decide. Please sign in again.")

const MOST_NAME_CHARACTERS = 200

/** Looking changes nothing: mail scanners follow links. Throws 404 for a token that is not valid. */
export async function showInvitation({ store }: AccessParts, token: string) {
  return invitationPage(await open(store.read, token), {})
}

const CALLED = {
  owner: "an owner",
  admin: "an admin",
  billing_admin: "a billing admin",
  member: "a member",
}

function invitationPage(seen: OpenInvitation, form: AccessForm, problem?: ApiError): Response {
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
  parts: AccessParts,
  token: string,
  form: AccessForm,
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

function wayIn({ link_base }: AccessParts, title: string, text: string): Response {
  const content = html`<p>${text}</p>
<p><a class="go" href="/sign-in">Sign in</a></p>
<p class="hint">Or in your terminal:</p>
<p class="command"><code>belfry login ${link_base() || "ADDRESS"}</code></p>`
  return smallPage(title, content)
}

type Who = (tx: Tx) => Promise<users.UserRow>

const returning = (
  parts: AccessParts,
  { invitation }: OpenInvitation,
  { password = "", code = "" }: AccessForm,
  ip: string,
): Promise<Who> => identify(parts, { email: invitation.email, password, code }, ip)

async function newcomer(
  { sign_up }: AccessParts,
  { invitation }: OpenInvitation,
  { name = "", password = "" }: AccessForm,
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

/** Looking changes nothing. Throws 422 `otp_expired` for a token that is not valid. */
export async function showReset({ store }: AccessParts, token: string): Promise<Response> {
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
  parts: AccessParts,
  token: string,
  { new_password = "" }: AccessForm,
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
