import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { environment } from "../lib/environment"
import { exits, Failure } from "../lib/errors"
import { PASSWORD_STDIN, YOUR_EMAIL } from "../lib/flags"
import {
  type Connection,
  type Profile,
  profilesPath,
  readProfiles,
  sameServer,
  webAddress,
  writeProfiles,
} from "../lib/profiles"
import { ask, confirm, emailOf, password } from "../lib/prompts"
import { own } from "../lib/resource"
import { keepSession, type SessionAnswer } from "../lib/session"
import { fields } from "../lib/table"
import { millis, pause } from "../lib/time"

interface LoginOptions {
  email?: string
  passwordStdin?: boolean
  code?: string
  device?: boolean
}

export const signed_in_fields = ["profile", "url", "user", "accounts", "account_id"]

const path = () => profilesPath(environment)

const login: Action<LoginOptions> = async (context, options, given = "") => {
  context.output.promises(signed_in_fields)
  const url = serverUrl(context, given)
  const answer = await (options.device ? byDevice(context, url) : byPassword(context, url, options))
  return signedIn(context, url, answer)
}

/** The server that is named in the command, else the one that commands use. */
export const serverUrl = (context: Context, given: string): string =>
  given ? webAddress(given) : context.connection().url

/** Stores what a sign-in answered in a profile, which is chosen from then on. */
export function storeSession(context: Context, url: string, answer: SessionAnswer) {
  const stored = readProfiles(path())
  const name = profileFor(context, url)
  const before = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  const same = before && sameServer(before.url, url)
  const profile: Profile = same ? { ...before, url } : { url, api_key: null }
  const kept = keepSession(path(), name, profile, answer)
  writeProfiles(path(), { ...readProfiles(path()), current: name })
  return { name, account_id: kept.account_id }
}

/** As `storeSession`, and shows the signed-in person, never the tokens. */
export async function signedIn(
  context: Context,
  url: string,
  answer: SessionAnswer,
): Promise<undefined> {
  const { name, account_id } = storeSession(context, url, answer)
  const { user, accounts } = answer
  const record = { profile: name, url, user, accounts, account_id }
  const { output, paint } = context
  await output.record(record, () => `${paint.green("✓")} signed in as ${user.email} at ${url}`)
  await output.next(account_id ? "belfry projects list" : "belfry accounts list")
}

/** The one named, else the one of this server, else one by its host's name. */
function profileFor({ flags }: Context, url: string): string {
  if (flags.profile) return flags.profile
  const { current, profiles } = readProfiles(path())
  const fits = (name: string | null) => name !== null && sameServer(profiles[name]?.url ?? "", url)
  if (fits(current)) return current ?? ""
  return Object.keys(profiles).find(fits) ?? new URL(url).hostname.replaceAll(/[^\w.-]/g, "-")
}

async function byPassword(context: Context, url: string, options: LoginOptions) {
  const client = context.anonymous(url)
  const email = await emailOf(context, options)
  const body = { email, password: await password(context, options) }
  const { data } = await client.call("POST /v1/session", { body })
  if (!("mfa_required" in data)) return data
  const question = "Code of your second factor"
  const code = options.code ?? (await ask(context, question, "give it with --code"))
  const proof = { token: data.mfa_challenge.token, code }
  return (await client.call("POST /v1/session/mfa", { body: proof })).data
}

/** For a machine without a browser: a person that is signed in elsewhere approves. */
async function byDevice(context: Context, url: string): Promise<SessionAnswer> {
  const client = context.anonymous(url)
  const program = { client_name: `belfry CLI on ${process.platform}` }
  const { data: begun } = await client.call("POST /v1/session/device", { body: program })
  const page = new URL(begun.verification_uri, url)
  const told = `Open ${page} and enter ${begun.user_code}`
  process.stderr.write(`${told}\n`) // also off a terminal, because the person needs it

  const body = { device_code: begun.device_code }
  const deadline = millis() + begun.expires_in * 1000
  let interval = begun.interval * 1000
  while (millis() < deadline) {
    await pause(interval)
    try {
      return (await client.call("POST /v1/session/device/token", { body })).data
    } catch (error) {
      const reason = error instanceof Failure ? error.details.reason : undefined
      if (reason === "slow_down") interval += 5000
      else if (reason !== "authorization_pending") throw error
    }
  }
  throw new Failure(exits.unauthorized, "expired", "Nobody approved the sign-in in time.")
}

/** Ends the session on the server, and removes it here even if the server refuses. */
const logout: Action<object> = async (context) => {
  const { profile: name, url, signed_in } = context.connection()
  const { output, paint } = context
  if (!signed_in || name === null) {
    const text = `Nobody is signed in at ${url}.`
    const hint = output.again("belfry login")
    throw new Failure(exits.unauthorized, "unauthorized", text, { hint })
  }
  output.promises(["profile", "url", "signed_in"])
  try {
    await context.call("DELETE /v1/session")
  } catch (error) {
    if (!(error instanceof Failure && error.exit === exits.unauthorized)) throw error
  }
  forgetSession({ profile: name, url })
  await output.record({ profile: name, url, signed_in: false }, () => {
    return `${paint.green("✓")} signed out at ${url}`
  })
}

/** Removes the sign-in from the profile. Its key stays. */
function forgetSession({ profile: name, url }: Pick<Connection, "profile" | "url">): void {
  if (name === null) return
  const stored = readProfiles(path())
  const before = stored.profiles[name] ?? { url, api_key: null }
  const { session: _, account_id: __, project_id: ___, ...rest } = before
  writeProfiles(path(), { ...stored, profiles: { ...stored.profiles, [name]: rest } })
}

const whoami: Action<object> = async (context) => {
  const { url, profile, signed_in, api_key, key_from, account_id, project_id } =
    context.connection()
  const { output, paint } = context
  const place = { url, profile, key_from, account_id, project_id }
  if (!signed_in) {
    const account = await (api_key === null ? someServer(context) : accountOfKey(context))
    const key = api_key && `${api_key.slice(0, 17)}…`
    const person = { user: null, session: null, accounts: account && [account] }
    const own = { account_id: account?.id ?? account_id, api_key: key }
    const record = { kind: key ? "key" : "nobody", ...place, ...own, ...person }
    await output.record(record, () => {
      return fields(Object.entries({ ...record, accounts: account?.name }), paint)
    })
    return key ? exits.done : exits.unauthorized
  }
  const { data } = await context.call("GET /v1/session")
  await output.record({ kind: "user", ...place, api_key: null, ...data }, () => {
    const accounts = data.accounts.map(({ id, name, role }) => ["account", `${name} ${role} ${id}`])
    const own = { user: data.user.email, server: url, profile }
    const chosen = { "works in": account_id, project: project_id }
    const lines = [...Object.entries(own), ...accounts, ...Object.entries(chosen)]
    return fields(lines as [string, unknown][], paint)
  })
  return exits.done
}

/** Nobody has no account. Throws where no server answers, because the address may be wrong. */
async function someServer(context: Context): Promise<null> {
  await context.anonymous().call("GET /v1/setup")
  return null
}

/** The account of a key; null for a key that is good but may not see it. Throws for one that is not. */
async function accountOfKey(context: Context): Promise<{ id: string; name: string } | null> {
  try {
    const { id, name } = (await context.call("GET /v1/accounts/me")).data
    return { id, name }
  } catch (error) {
    if (error instanceof Failure && "required_scope" in error.details) return null
    throw error
  }
}

/** The server asks for the password. A script needs --yes as well. */
const remove: Action<{ passwordStdin?: boolean }> = async (context, { passwordStdin }) => {
  context.output.promises(fieldsOf("DELETE /v1/users/me"))
  const client = context.client()
  const { email } = (await client.call("GET /v1/users/me")).data
  const what = `The user ${email} and all their roles will be deleted. This cannot be undone.`
  await confirm(context, what, email)
  const body = { password: await password(context, { passwordStdin }) }
  const { data } = await client.call("DELETE /v1/users/me", { body })
  forgetSession(context.connection())
  await context.output.record(data, () => `${context.paint.green("✓")} deleted ${email}`)
}

/** On a terminal the code is drawn, so that a phone can read it from the screen. */
const enroll: Action<object> = async (context) => {
  const name = "POST /v1/users/me/mfa/enroll"
  context.output.promises(fieldsOf(name))
  const { data } = await context.call(name)
  const { renderUnicodeCompact } = await import("uqr")
  await context.output.record(data, () =>
    [
      renderUnicodeCompact(data.otpauth_url),
      `Scan this code with your app, or enter the secret ${data.secret}.`,
      "If you lose your app, each backup code works once. The codes cannot be shown again:",
      ...data.backup_codes.map((code) => `  ${code}`),
    ].join("\n"),
  )
  await context.output.next("belfry me mfa verify <code>")
}

export const loginRows = [
  own("login [url]", login, {
    about: "sign in as a person; a profile stores the session",
    example: ["https://mail.example.test", "http://127.0.0.1:8080 --device"],
    options: [
      ...[YOUR_EMAIL, PASSWORD_STDIN],
      ["--code <code>", "code of your second factor"],
      ["--device", "approve the sign-in on another device"],
    ],
  }),
  own("logout", logout, { about: "sign out" }),
  own("whoami", whoami, {
    about: "ask the server about the person or key that commands use",
    example: ["", "--json=user.email,account_id"],
  }),
]

export const deleteUserRow = own("delete", remove, {
  about: "delete your user; the accounts keep their data",
  options: [PASSWORD_STDIN],
})

export const enrollRow = own("enroll", enroll, {
  about: "start a second factor; its secret and backup codes are shown once",
})
