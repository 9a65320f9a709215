import { expect } from "bun:test"
import { NEVER_MS } from "../harness/waits"

/** A server that answers as its first project: one of the harness, or one started by `serve`. */
export interface Server {
  request(path: string, init?: RequestInit): Promise<Response>
}

/** What these tests read of an email. */
export interface Mail {
  id: string
  status: string
  status_reason: string | null
  rfc_message_id: string
  attempts: number
  next_attempt_at: string | null
  provider: string | null
  error: { code: string; message: string; smtp_code: number | null } | null
}

export interface MailEvent {
  type: string
  bounce_type: string | null
  bounce_subtype: string | null
  detail: { smtp_code: number | null; response: string | null }
}

/** What came to the embedded mailbox. */
export interface Caught {
  id: string
  email_id: string | null
  from: string
  to: string
  subject: string
  text: string | null
  html: string | null
}

export interface Problem {
  code: string
  message: string
  details: Record<string, unknown>
}

/** Between two looks: what comes late is looked for less often, because each look is work of the server, too. */
const POLL_MS = { first: 30, last: 200 }

/** Looks again and again until there is something. The deadline is for what will never come. */
export async function until<Found>(
  what: string,
  look: () => Promise<Found | undefined | false> | Found | undefined | false,
  timeout_ms = NEVER_MS,
): Promise<Found> {
  const deadline = performance.now() + timeout_ms
  for (let pause = POLL_MS.first; ; pause = Math.min(pause * 1.2, POLL_MS.last)) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeout_ms} ms`)
    await Bun.sleep(pause)
  }
}

/** Asks to send; the answer as it comes. */
export const post = (
  server: Server,
  fields: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Response> =>
  server.request("/v1/emails", {
    method: "POST",
    headers,
    body: JSON.stringify({
      from: "me@mailbox.test",
      to: "ann@mailbox.test",
      subject: "Hi",
      text: "hello",
      ...fields,
    }),
  })

/** Sends, and expects to be told 201. Resolves to the id. */
export async function send(server: Server, fields: Record<string, unknown> = {}): Promise<string> {
  const response = await post(server, fields)
  const body = (await response.json()) as { id: string }
  expect(body).toHaveProperty("id")
  expect(response.status).toBe(201)
  return body.id
}

/** The `data` of an answer that must be a 200. */
export async function get<Data>(server: Server, path: string): Promise<Data> {
  const response = await server.request(path)
  const { data, error } = (await response.json()) as { data: Data; error?: Problem }
  expect(error).toBeUndefined()
  expect(response.status).toBe(200)
  return data
}

export async function problemOf(response: Response): Promise<Problem> {
  const { error } = (await response.json()) as { error: Problem }
  return error
}

/** Resolves once the email has one of these statuses. */
export function reaches(server: Server, id: string, ...statuses: string[]): Promise<Mail> {
  return until(`email ${id} ${statuses.join(" or ")}`, async () => {
    const mail = await get<Mail>(server, `/v1/emails/${id}`)
    return statuses.includes(mail.status) && mail
  })
}

/** Resolves once an attempt was made and another one is to come. */
export function deferred(server: Server, id: string): Promise<Mail> {
  return until(`email ${id} deferred`, async () => {
    const mail = await get<Mail>(server, `/v1/emails/${id}`)
    return mail.next_attempt_at !== null && mail
  })
}

export async function eventsOf(server: Server, id: string): Promise<MailEvent[]> {
  return (await get<{ events: MailEvent[] }>(server, `/v1/emails/${id}/events`)).events
}

export const eventTypes = async (server: Server, id: string): Promise<string[]> =>
  (await eventsOf(server, id)).map(({ type }) => type)

/** How many emails of the project have the status; without one, all of them. */
export async function countOf(server: Server, status?: string): Promise<number> {
  const of_status = status === undefined ? "" : `status=${status}&`
  const response = await server.request(`/v1/emails?${of_status}per_page=1`)
  const { meta } = (await response.json()) as { meta: { total: number } }
  return meta.total
}

/** Highest first: a message that moves up between two counts is missed, and never counted twice. */
const ENDED = ["complained", "bounced", "failed", "delivered", "sent"]

/**
 * Nothing waits and nothing runs. Ends are counted, because a message that a lost lease gives back
 * between a count of `queued` and one of `sending` is in neither.
 */
export const drained = (server: Server, timeout_ms?: number): Promise<boolean> =>
  until(
    "nothing left to send",
    async () => {
      if ((await countOf(server, "queued")) > 0) return false // one request, while there is much to do
      let left = await countOf(server)
      for (const status of ENDED) left -= await countOf(server, status)
      return left === 0
    },
    timeout_ms,
  )
