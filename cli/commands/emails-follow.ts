import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { eventText } from "../lib/email-text"
import { exits, Failure } from "../lib/errors"
import { follow, serverTime, startAt } from "../lib/feed"
import type { Email, EmailEvents } from "../lib/records"
import { millis, moment, pause } from "../lib/time"
import { eventLine } from "./events"

const POLL = 100

interface TailOptions {
  since?: string
}

/** Follows everything until Ctrl-C or --timeout, or one email until it is settled. */
export const tail: Action<TailOptions> = async (context, { since }, id) => {
  const deadline = context.timeout === undefined ? Infinity : millis() + context.timeout
  if (id !== undefined) return await tailOne(context, id, deadline)

  const { output, paint } = context
  const client = context.client()
  const begin = since === undefined ? await serverTime(client) : moment(since, "--since")
  const start = await startAt(client, begin)
  await output.note(paint.dim("following emails; Ctrl-C stops"))
  for await (const event of follow(client, start, "email.*", deadline)) {
    await output.line(event, () => eventLine(event, context))
  }
  return exits.done
}

async function tailOne(context: Context, id: string, deadline: number): Promise<number> {
  const { output, paint } = context
  const client = context.client()
  const path = `/v1/emails/${encodeURIComponent(id)}`
  const seen = new Set<string>()
  while (true) {
    const { data } = await client.get<EmailEvents>(`${path}/events`)
    for (const event of data.events) {
      if (seen.has(event.id)) continue
      seen.add(event.id)
      await output.line(event, () => eventText(event, paint))
    }
    if (await isOver(client, path, data.status)) return exits.done
    if (millis() + POLL > deadline) throw notSettled(context, data)
    await pause(POLL)
  }
}

/** Only the email itself tells which provider had it, and so whether `sent` is the last word. */
async function isOver(client: Client, path: string, status: string): Promise<boolean> {
  if (status !== "sent") return settled({ status, provider: null })
  return settled((await client.get<Email>(path)).data)
}

function notSettled({ output }: Context, { email_id, status }: EmailEvents): Failure {
  const message = `The waiting time is over. Email ${email_id} is still ${status}.`
  const hint = `\`${output.again(`belfry emails get ${email_id}`)}\` says why`
  return new Failure(exits.failed, "timeout", message, { details: { email_id, status }, hint })
}

/** Nothing more is expected: a relay (`smtp`) says no more after `sent`, the others do. */
export const settled = ({ status, provider }: Pick<Email, "status" | "provider">): boolean =>
  ["delivered", "bounced", "complained", "failed"].includes(status) ||
  (status === "sent" && provider === "smtp")

/** Reads the email until it is settled or `limit` milliseconds are over; the last reading. */
export async function waitUntilSettled(client: Client, id: string, limit: number): Promise<Email> {
  const deadline = millis() + limit
  while (true) {
    const { data } = await client.get<Email>(`/v1/emails/${encodeURIComponent(id)}`)
    if (settled(data) || millis() + POLL > deadline) return data
    await pause(POLL)
  }
}
