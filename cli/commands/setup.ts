import type { Action, Context } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import type { PlainOptions } from "../lib/field-flags"
import {
  ACCOUNT_NAME,
  NEW_PASSWORD_STDIN,
  optionWords,
  PASSWORD_STDIN,
  PROJECT_NAME,
  quoted,
  YOUR_EMAIL,
  YOUR_NAME,
} from "../lib/flags"
import { given } from "../lib/input"
import { ask, askHidden, emailOf, password } from "../lib/prompts"
import { own, row } from "../lib/resource"
import { fields } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { serverUrl, signed_in_fields, signedIn, storeSession } from "./login"

const newPassword = ({ passwordStdin }: PlainOptions, context: Context) =>
  password(context, { passwordStdin: passwordStdin === true, is_new: true })

/** A password that a person forgot. */
export const passwordRows = [
  row("forgot <email>", "POST /v1/password/forgot", {
    about: "request a mail with a link for a new password",
    word: "ann@example.test",
    anonymous: true,
    // The answer is the same whether there is such a user or not.
    done: () => "if this user exists, a mail with a link is on its way",
  }),
  row("reset <token>", "POST /v1/password/reset", {
    about: "set a new password with the token of that mail; all sessions end",
    word: "belfry_reset_…",
    anonymous: true,
    flags: { new_password: false },
    options: [NEW_PASSWORD_STDIN],
    input: async (options, _, context) => ({ new_password: await newPassword(options, context) }),
    done: () => "the password is changed; all sessions have ended",
    next: () => "login",
  }),
]

interface SignUpFlags {
  email?: string
  name?: string
  passwordStdin?: boolean
}

interface SignUpOptions extends SignUpFlags {
  invitation?: string
}

/** Becomes a user where that is open, or with an invitation; and is signed in. */
const signUp: Action<SignUpOptions> = async (context, options, given_url = "") => {
  context.output.promises(signed_in_fields)
  const url = serverUrl(context, given_url)
  const body = {
    email: await emailOf(context, options),
    password: await password(context, { passwordStdin: options.passwordStdin, is_new: true }),
    ...given({ name: options.name, invitation_token: options.invitation }),
  }
  const { data } = await context.anonymous(url).call("POST /v1/users", { body })
  return signedIn(context, url, data)
}

interface SetupOptions extends SignUpFlags {
  setupToken?: string
  accountName?: string
  projectName?: string
}

/** The first owner of a box, from anywhere, with the token that its first start printed. */
const setup: Action<SetupOptions> = async (context, options, given_url = "") => {
  context.output.promises(["user", "account", "project", "api_key"])
  const url = serverUrl(context, given_url)
  await requireNoOwner(context, url)
  const hint = "give it with --setup-token; the first start printed it"
  const setup_token = options.setupToken ?? (await askHidden(context, "Setup token", hint))
  const email = await emailOf(context, options)
  const { accountName = "Main", projectName, name, passwordStdin } = options
  const body = {
    setup_token,
    email,
    password: await password(context, { passwordStdin, is_new: true }),
    account_name: accountName,
    ...given({ name, project_name: projectName }),
  }
  const { data } = await context.anonymous(url).call("POST /v1/setup", { body })
  const { session, account, project, api_key } = data
  storeSession(context, url, session)
  const { output, paint } = context
  const made = { user: session.user, account, project, api_key }
  await output.record(made, () => firstOwnerText("set up and signed in", made, paint), api_key.key)
  await output.next("belfry projects list")
}

type Named = { id: string; name: string }

/** What a setup made, with the key that is shown this once. */
export function firstOwnerText(
  done: string,
  made: { user: { email: string }; account: Named; project: Named; api_key: { key: string } },
  paint: Paint,
): string {
  const { user, account, project, api_key } = made
  const lines = {
    owner: user.email,
    account: `${account.name} ${account.id}`,
    project: `${project.name} ${project.id}`,
    "API key": api_key.key,
  }
  return `${paint.green("✓")} ${done}; the key cannot be shown again:\n${fields(Object.entries(lines), paint)}`
}

/** Refuses early, before the person types anything: there is one first owner. */
async function requireNoOwner(context: Context, url: string) {
  const { data } = await context.anonymous(url).call("GET /v1/setup")
  if (data.required) return
  const hint = context.output.again(`belfry login ${quoted(url)}`)
  throw new Failure(exits.not_found, "not_found", `${url} has an owner already.`, { hint })
}

interface AcceptOptions {
  name?: string
  passwordStdin?: boolean
}

/** A new person chooses a name and a password; one with a login accepts signed in. */
const accept: Action<AcceptOptions> = async (context, options, token = "") => {
  context.output.promises(signed_in_fields)
  const anonymous = context.anonymous()
  const params = { token }
  const { data: seen } = await anonymous.call("GET /v1/invitations/{token}", { params })
  const name = "POST /v1/invitations/{token}/accept"
  if (seen.user_exists) {
    if (!context.connection().signed_in) {
      const text = `${seen.email} already has a login here. Sign in, then accept the invitation.`
      const hint = context.output.again(`belfry login${optionWords({ email: seen.email })}`)
      throw new Failure(exits.unauthorized, "unauthorized", text, { hint })
    }
    const { data } = await context.call(name, { params, body: {} })
    return signedIn(context, context.connection().url, data)
  }
  await context.output.note(`${seen.account_name} invites ${seen.email} as ${seen.role}.`)
  const own_name = options.name ?? (await ask(context, "Your name", "give it with --name"))
  const { passwordStdin } = options
  const own_password = await password(context, { passwordStdin, is_new: true })
  const body = { name: own_name, password: own_password }
  const { data } = await anonymous.call(name, { params, body })
  return signedIn(context, anonymous.url, data)
}

export const acceptRow = own("accept <token>", accept, {
  about: "accept an invitation, as a new user or with your login",
  example: "--url https://mail.example.test",
  options: [["--name <name>", "your name, if you are a new user"], NEW_PASSWORD_STDIN],
})

export const signUpRows = [
  own("setup [url]", setup, {
    about: "become the first owner of a server, with its setup token",
    word: "https://mail.example.test",
    example: "--email ann@example.test --account-name Acme",
    options: [
      ...[YOUR_EMAIL, YOUR_NAME, PASSWORD_STDIN],
      ["--setup-token <token>", "token that the first start of the server printed"],
      ...[ACCOUNT_NAME, PROJECT_NAME],
    ],
  }),
  own("signup [url]", signUp, {
    about: "create your user, by invitation or by open sign-up",
    word: "https://mail.example.test",
    example: "--email kim@example.test",
    options: [
      ...[YOUR_EMAIL, YOUR_NAME, PASSWORD_STDIN],
      ["--invitation <token>", "token of an invitation to this address"],
    ],
  }),
]
