import type { Components } from "../../src/client/components"
import { openClient } from "../lib/client"
import { NOBODY } from "../lib/profiles"

/** Runs commands of the program against a server at `ready.url`. */
interface ServerBox {
  readonly ready: { url: string }
  run<Printed>(...words: string[]): Promise<Printed>
}

const NEWCOMER = "newcomer@mailbox.test"
const CALL_MILLISECONDS = 10_000

/**
 * Signs somebody up as a page does, with the code of the mail that came, ends the session, and finds that its token
 * opens nothing any more. Throws where anything differs.
 */
export async function signUpByCode(box: ServerBox): Promise<void> {
  const made = await box.run<Components["Application"]>("applications", "create", "--name", "Smoke")
  const app = { "x-application-key": made.public_keys.test ?? "" }
  const { url } = box.ready
  const page = openClient(
    { ...NOBODY, url, api_key: null },
    { timeout: CALL_MILLISECONDS, dry_run: false, anonymous: true },
  )
  const body = { email: NEWCOMER, purpose: "register" as const }
  await page.call("POST /v1/auth/email-otp/send", { headers: app, body })
  const mail = await box.run<Components["MailboxMail"]>("mailbox", "wait", "--to", NEWCOMER)
  const code = /\b\d{6}\b/.exec(mail.text ?? "")?.[0]
  if (code === undefined) throw new Error("the mail has no code")
  const verify = { headers: app, body: { ...body, code } }
  const { data } = await page.call("POST /v1/auth/email-otp/verify", verify)
  if (!("tokens" in data) || data.tokens === null) throw new Error("the sign-up brought no tokens")
  const headers = { authorization: `Bearer ${data.tokens.access_token}` }
  const { data: me } = await page.call("GET /v1/auth/users/me", { headers })
  if (me.email !== NEWCOMER) throw new Error(`the token is of ${me.email}, not of ${NEWCOMER}`)
  await box.run("users", "revoke-sessions", me.id, "--yes")
  const again = await page.call("GET /v1/auth/users/me", { headers }).catch(() => undefined)
  if (again) throw new Error("the token works although its session was revoked")
  const events = await box.run<Components["EventEnvelope"][]>("events", "list", "--event", "user.*")
  const types = events.map(({ type }) => type)
  if (!types.includes("user.created")) throw new Error(`no event tells of it, only ${types}`)
}
