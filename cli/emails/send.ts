import type { Action, Context } from "../context"
import { usage } from "../failure"
import { email_fields, ref_fields } from "../fields"
import { FIRST_EMAIL } from "../hint"
import type { Email, EmailRef } from "../records"
import { composeBody, type SendOptions } from "./compose"
import { settled, waitUntilSettled } from "./settled"
import { emailText, statusMark } from "./show"

const DEFAULT_WAIT = 60_000
const CALL_LIMIT = 30_000

/** Sends one email. With `--wait` exit 1 when it is settled and did not get there. */
export const send: Action<SendOptions> = async (context, options) => {
  if (!options.to && !options.file) {
    throw usage("--to is missing", context.output.again(FIRST_EMAIL))
  }
  context.output.promises(options.wait ? email_fields : ref_fields)
  const body = await composeBody(options)
  // With --wait, --timeout is the time to wait; the call that sends has a limit of its own.
  const client = context.client(options.wait ? CALL_LIMIT : undefined)
  const headers = keyHeader(options.idempotencyKey)
  const { data } = await client.post<EmailRef>("/v1/emails", body, headers)
  return options.wait ? await waited(context, data) : await queued(context, data)
}

const keyHeader = (key: string | undefined) => (key ? { "idempotency-key": key } : undefined)

async function queued({ output, paint }: Context, sent: EmailRef): Promise<undefined> {
  const hint = paint.dim(`   → ${output.again(`belfry emails tail ${sent.id}`)}`)
  await output.record(sent, () => `${paint.green("✓")} ${sent.status}  ${sent.id}${hint}`)
  return undefined
}

async function waited(context: Context, { id }: EmailRef): Promise<number> {
  const { output, paint } = context
  await output.note(paint.dim(`queued ${id}, waiting`))
  const email = await waitUntilSettled(context.client(), id, context.timeout ?? DEFAULT_WAIT)
  await output.record(email, () => `${statusMark(email, paint)}  ${email.id}`)
  if (!settled(email))
    await output.note(`the waiting time is over; the status is still ${email.status}`)
  return ["sent", "delivered"].includes(email.status) ? 0 : 1
}

export const cancel: Action<object> = async (context, _, id = "") => {
  context.output.promises(email_fields)
  const { data } = await context.client().post<Email>(`${pathOf(id)}/cancel`)
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} cancelled\n${emailText(data, paint)}`)
  return undefined
}

export const resend: Action<SendOptions> = async (context, { to, idempotencyKey }, id = "") => {
  context.output.promises(ref_fields)
  const body = to ? { to } : undefined
  const headers = keyHeader(idempotencyKey)
  const { data } = await context.client().post<EmailRef>(`${pathOf(id)}/resend`, body, headers)
  return await queued(context, data)
}

const pathOf = (id: string) => `/v1/emails/${encodeURIComponent(id)}`
