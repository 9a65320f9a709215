import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { AFTER, EVENT, ONLY_EVENT } from "../lib/flags"
import { onInterrupt } from "../lib/interrupt"
import { listenSecret, receiverAddress } from "../lib/listen-secret"
import { limitOf } from "../lib/paging"
import { type PostResult, post } from "../lib/post"
import { own } from "../lib/resource"
import { EventStream, type Frame, notifyLink } from "../lib/stream"
import { lineId } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { clockTime, millis } from "../lib/time"

interface ListenOptions {
  forwardTo?: string
  event?: string[]
  after?: string
  printSecret?: boolean
  skipVerify?: boolean
  limit?: string
}

/** Deliveries of the project, forwarded to a receiver on this machine, until Ctrl-C or --timeout. */
const listen: Action<ListenOptions> = async (context, options) => {
  if (options.printSecret) return await printSecret(context)
  if (options.forwardTo === undefined)
    throw usage("--forward-to is missing", "belfry listen --forward-to localhost:3000/hooks")
  return await new Listening(context, options, receiverAddress(options.forwardTo)).run()
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
 * either forwarded already, or is on its way.
 */
class Listening {
  readonly #context: Context
  readonly #options: ListenOptions
  readonly #url: string
  /** By event, in the order of the feed, from the first that is not done. */
  readonly #in_flight = new Map<string, Promise<PostResult>>()
  readonly #done = new Set<string>()
  /** The last event before which everything has been forwarded. */
  #cursor: string | undefined
  readonly #stream: EventStream
  #is_ready = false
  #left: number

  constructor(context: Context, options: ListenOptions, url: string) {
    const { after, event, limit } = options
    this.#context = context
    this.#options = options
    this.#url = url
    this.#left = limit === undefined ? Number.POSITIVE_INFINITY : limitOf(limit)
    this.#stream = new EventStream(context.client(), {
      forward: true,
      types: event?.join(","),
      timeout: context.timeout,
      headers: { "x-svc-listen-secret": listenSecret(context) },
      ...(after !== undefined && { start: { after, not_before: undefined } }),
      cursor: () => this.#cursor,
      onFrame: (frame) => this.#onFrame(frame),
      onState: notifyLink(context),
    })
  }

  async run(): Promise<number> {
    let exit: number = exits.done
    onInterrupt(() => {
      exit = exits.interrupted
      this.#stream.close()
    })
    await this.#stream.ended
    if (exit === exits.done) await Promise.all(this.#in_flight.values())
    return exit
  }

  /** Deliveries run concurrently: the next frame does not wait for the receiver. */
  async #onFrame(frame: Frame): Promise<void> {
    if (frame.type === "ready") await this.#ready(frame.secret)
    if (frame.type !== "delivery") return
    this.#forward(frame).catch((error) => this.#stream.fail(error))
  }

  async #ready(secret: string) {
    if (this.#is_ready) return
    this.#is_ready = true
    const { output, paint } = this.#context
    if (output.form === "quiet") return // it has no id
    await output.line({ type: "ready", secret, forward_to: this.#url }, () => {
      const to = paint.dim(`forwarding to ${cleanLine(this.#url)}; Ctrl-C stops`)
      return `Ready. Signing secret ${paint.bold(secret)}   ${to}`
    })
  }

  async #forward({ delivery_id, headers, body }: StreamDelivery) {
    const at = new Date(millis()).toISOString()
    const event_id = headers["webhook-id"] ?? delivery_id
    const known = this.#in_flight.get(event_id)
    const { skipVerify: skip_verify } = this.#options
    const posted = known ?? post({ url: this.#url, headers, body, skip_verify })
    this.#in_flight.set(event_id, posted)
    const { status, body: answer, error, duration_ms } = await posted
    if (!known) this.#advance(event_id)
    const response = { response_status: status, response_body: answer }
    this.#stream.send({ type: "result", delivery_id, ...response })
    if (known) return
    const event = { at, event_type: typeOf(body), event_id }
    const record = { type: "delivery", ...event, response_status: status, error, duration_ms }
    await this.#context.output.line(record, () => deliveryLine(record, this.#context))
    this.#left -= 1
    if (this.#left === 0) this.#stream.close()
  }

  #advance(event_id: string) {
    this.#done.add(event_id)
    for (const first of this.#in_flight.keys()) {
      if (!this.#done.delete(first)) return
      this.#in_flight.delete(first)
      this.#cursor = first
    }
  }
}

type StreamDelivery = Extract<Frame, { type: "delivery" }>

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

export const listenRow = own("listen", listen, {
  about: "forward webhooks to a receiver on this machine",
  example: [
    "--forward-to localhost:3000/hooks",
    "--forward-to localhost:3000/hooks --event email.delivered --event email.bounced",
    "--print-secret",
  ],
  options: [
    ["--forward-to <url>", "URL of the receiver, for example localhost:3000/hooks"],
    [EVENT, ONLY_EVENT, "several"],
    AFTER,
    ["--print-secret", "print the signing secret of this machine, and forward nothing"],
    ["--skip-verify", "accept any TLS certificate of the receiver"],
    ["--limit <number>", "end after this number of deliveries"],
  ],
})
