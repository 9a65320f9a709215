import { confirm } from "./confirm"
import type { Action } from "./context"
import { usage } from "./failure"
import { deleted_fields, user_fields } from "./fields"
import { forgetSession } from "./login"
import { password as askPassword, twoPasswords } from "./prompt"
import type { Deleted, User } from "./records"
import { given } from "./switches"
import { fields } from "./table"
import type { Paint } from "./terminal"

const ME = "/v1/users/me"

const shown = (user: User, paint: Paint) => fields(Object.entries(user), paint)

export const get: Action<object> = async (context) => {
  const { data } = await context.client().get<User>(ME)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

interface UpdateOptions {
  name?: string
  locale?: string
  timezone?: string
}

export const update: Action<UpdateOptions> = async (context, { name, locale, timezone }) => {
  const changes = given({ name, locale, timezone })
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises(user_fields)
  const { data } = await context.client().patch<User>(ME, changes)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

interface PasswordOptions {
  passwordStdin?: boolean
}

export const password: Action<PasswordOptions> = async (context, options) => {
  context.output.promises(["success"])
  const [current_password, new_password] = await twoPasswords(context, options)
  const body = { current_password, new_password }
  const { data } = await context.client().post<{ success: boolean }>(`${ME}/password`, body)
  const text = `${context.paint.green("✓")} the password is changed; your other sessions have ended`
  await context.output.record(data, () => text)
  return undefined
}

/** The server wants the password; whoever types it means it, but a script has to say so too. */
export const remove: Action<PasswordOptions> = async (context, { passwordStdin }) => {
  context.output.promises(deleted_fields)
  const client = context.client()
  const { email } = (await client.get<User>(ME)).data
  const what = `The user ${email} and all their roles will be deleted. This cannot be undone.`
  await confirm(context, what, email)
  const body = { password: await askPassword(context, { passwordStdin }) }
  const { data } = await client.remove<Deleted>(ME, {}, body)
  forgetSession(context.connection())
  await context.output.record(data, () => `${context.paint.green("✓")} deleted ${email}`)
  return undefined
}

/** For `belfry login --device` elsewhere: whoever says yes lets that program act as himself. */
export const approve: Action<{ deny?: boolean }> = async (context, { deny = false }, code = "") => {
  context.output.promises(["approved"])
  const body = { user_code: code, approve: !deny }
  const path = "/v1/session/device/approve"
  const { data } = await context.client().post<{ approved: boolean }>(path, body)
  const text = data.approved
    ? "the program is signed in as you"
    : "the sign-in of the program is refused"
  await context.output.record(data, () => `${context.paint.green("✓")} ${text}`)
  return undefined
}
