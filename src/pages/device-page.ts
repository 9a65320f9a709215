import { timingSafeEqual } from "node:crypto"
import { eq } from "drizzle-orm"
import { type ApiError, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis } from "../core/time"
import { type DeviceRow, decide, waitingFor } from "../identity/device-sign-in"
import { identify, type ProofParts } from "../identity/sign-in"
import { consoleUsers } from "../identity/tables"
import type * as users from "../identity/users"
import { forUpdate } from "../store/dialect"
import { html } from "./html"
import { formPage, orForm, PROOF, smallPage, timeText } from "./small-page"

const TITLE = "Sign in a device"
const TICKET_MILLISECONDS = 5 * 60_000

export type DeviceForm = Partial<
  Record<"user_code" | "email" | "password" | "code" | "ticket" | "decision", string>
>

/** Looking changes nothing: a code in the address only fills in the form. */
export const askForCode = (form: DeviceForm, problem?: ApiError): Response =>
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
export const answerForm = (parts: ProofParts, form: DeviceForm, ip: string): Promise<Response> =>
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
  { user_code, device }: { user_code: string; device: DeviceRow },
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

async function settle({ store, secrets }: ProofParts, form: DeviceForm, ip: string) {
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
