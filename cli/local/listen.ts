import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { limitOf } from "../lib/paging"
import { type PostResult, post } from "../lib/post"
import { EventStream, type Frame, notifyLink } from "../lib/stream"
import { lineId } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { clockTime, millis } from "../lib/time"
import { listenSecret, receiverAddress } from "./listen-secret"

interface ListenOptions {
  forwardTo?: string
  event?: string[]
  after?: string
  printSecret?: boolean
  skipVerify?: boolean
  limit?: string
}

/** Deliveries of the project, forwarded to a receiver on this machine, until Ctrl-C or --timeout. */
export const listen: Action<ListenOptions> = async (context, options) => {
  if (options.printSecret) return await printSecret(context)
  if (options.forwardTo === undefined)
    throw usage("--forward-to is missing", "belfry listen --forward-to localhost:3000/hooks")
  return await forwardAll(context, options, receiverAddress(options.forwardTo))
}

/** Only the secret, in a pipe too, for `SECRET=$(belfry listen --print-secret)`. */
async function printSecret(context: Context): Promise<undefined> {
  const { output, flags } = context
  const secret = listenSecret(context)
  if (flags.json === undefined && !flags.ndjson) await output.raw(`${secret}\n`)
  else await output.record({ secret }, () => secret)
}

/**
 * Carries deliveries to a receiver, each event once: what the server sends again after a reconnect was
 * either forwarded already, or is on its way. Deliveries run concurrently.
 */
async function forwardAll(context: Context, options: ListenOptions, url: string): Promise<number> {
  const { output, paint } = context
  const { after, event, limit, skipVerify: skip_verify } = options
  const carried = new Carried()
  let left = limit === undefined ? Number.POSITIVE_INFINITY : limitOf(limit)
  let is_ready = false
  const ready = async (secret: string) => {
    if (is_ready || output.form === "quiet") return // it has no id
    is_ready = true
    await output.line({ type: "ready", secret, forward_to: url }, () => {
      const to = paint.dim(`forwarding to ${cleanLine(url)}; Ctrl-C stops`)
      return `Ready. Signing secret ${paint.bold(secret)}   ${to}`
    })
  }
  const forward = async ({ delivery_id, headers, body }: Delivered) => {
    const at = new Date(millis()).toISOString()
    const event_id = headers["webhook-id"] ?? delivery_id
    const is_known = carried.has(event_id)
    const posting = () => post({ url, headers, body, skip_verify })
    const { status, body: answer, error, duration_ms } = await carried.once(event_id, posting)
    stream.send({ type: "result", delivery_id, response_status: status, response_body: answer })
    if (is_known) return
    const record = {
      ...{ type: "delivery", at, event_type: typeOf(body), event_id },
      ...{ response_status: status, error, duration_ms },
    }
    await output.line(record, () => deliveryLine(record, context))
    left -= 1
    if (left === 0) stream.close()
  }
  const stream = new EventStream(context.client(), {
    forward: true,
    types: event?.join(","),
    timeout: context.timeout,
    headers: { "x-svc-listen-secret": listenSecret(context) },
    ...(after !== undefined && { start: { after, not_before: undefined } }),
    cursor: () => carried.cursor,
    async onFrame(frame) {
      if (frame.type === "ready") await ready(frame.secret)
      // The next frame does not wait for the receiver.
      if (frame.type === "delivery") forward(frame).catch((error) => stream.fail(error))
    },
    onState: notifyLink(context),
  })
  let exit: number = exits.done
  onInterrupt(() => {
    exit = exits.interrupted
    stream.close()
  })
  await stream.ended
  if (exit === exits.done) await carried.all()
  return exit
}

type Delivered = Extract<Frame, { type: "delivery" }>

/** Events on their way to the receiver, in the order of the feed, from the first that is not done. */
class Carried {
  /** The last event before which everything is done. */
  cursor: string | undefined
  readonly #posts = new Map<string, Promise<PostResult>>()
  readonly #done = new Set<string>()

  has = (event_id: string) => this.#posts.has(event_id)

  all = () => Promise.all(this.#posts.values())

  once(event_id: string, posting: () => Promise<PostResult>): Promise<PostResult> {
    const posted = this.#posts.get(event_id) ?? posting().finally(() => this.#advance(event_id))
    this.#posts.set(event_id, posted)
    return posted
  }

  #advance(event_id: string) {
    this.#done.add(event_id)
    for (const first of this.#posts.keys()) {
      if (!this.#done.delete(first)) return
      this.#posts.delete(first)
      this.cursor = first
    }
  }
}

interface ForwardedDelivery {
  at: string
  event_id: string
  event_type: string
  response_status: number | null
  error: string | null
  duration_ms: number
}

/** `12:00:01.102 email.delivered evt_… → 200 (12 ms)`, the id by its end on a narrow terminal. */
function deliveryLine(forwarded: ForwardedDelivery, { paint, terminal }: Context): string {
  const { at, event_id, event_type, response_status: status, error, duration_ms } = forwarded
  const is_good = status !== null && status >= 200 && status < 300
  const answer = cleanLine(status === null ? (error ?? "no answer") : String(status))
  const shown = is_good ? paint.green(answer) : paint.red(`${answer} ✗`)
  const what = `${cleanLine(event_type)} ${lineId(cleanLine(event_id), terminal)}`
  return `${paint.dim(clockTime(at))} ${what} → ${shown} ${paint.dim(`(${duration_ms} ms)`)}`
}

function typeOf(body: string): string {
  const { type } = JSON.parse(body) as { type?: unknown }
  return typeof type === "string" ? type : ""
}
