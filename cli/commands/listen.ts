import type { Command } from "commander"
import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { AFTER, EVENT, ONLY_EVENT } from "../lib/flags"
import { onInterrupt } from "../lib/interrupt"
import { listenSecret, receiverAddress } from "../lib/listen-secret"
import { limitOf } from "../lib/paging"
import { type PostResult, post } from "../lib/post"
import { examples, run, several } from "../lib/run"
import { type EventStream, type Frame, openEventStream, tellLink } from "../lib/stream"
import { lineId } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { clockTime, millis } from "../lib/time"

/** Webhooks of the project, forwarded to this machine. */
export function define(program: Command): void {
  program
    .command("listen")
    .description("forward webhooks to a receiver on this machine")
    .option("--forward-to <url>", "URL of the receiver, for example localhost:3000/hooks")
    .option(EVENT, ONLY_EVENT, several)
    .option(...AFTER)
    .option("--print-secret", "print the signing secret of this machine, and forward nothing")
    .option("--skip-verify", "accept any TLS certificate of the receiver")
    .option("--limit <number>", "end after this number of deliveries")
    .addHelpText(
      "after",
      examples(
        "listen --forward-to localhost:3000/hooks",
        "listen --forward-to localhost:3000/hooks --event email.delivered --event email.bounced",
        "listen --print-secret",
      ),
    )
    .action(run(listen))
}

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
  if (options.printSecret) {
    await printSecret(context)
    return exits.done
  }
  if (options.forwardTo === undefined) {
    throw usage("--forward-to is missing", "belfry listen --forward-to localhost:3000/hooks")
  }
  const url = receiverAddress(options.forwardTo)
  return await new Listening(context, options, new Forwarder(url, options.skipVerify), url).run()
}

/** Only the secret, in a pipe too, for `SECRET=$(belfry listen --print-secret)`. */
async function printSecret(context: Context) {
  const { output, flags } = context
  const secret = listenSecret(context)
  if (flags.json === undefined && !flags.ndjson) return await output.raw(`${secret}\n`)
  await output.record({ secret }, () => secret)
}

class Listening {
  readonly #context: Context
  readonly #options: ListenOptions
  readonly #forwarder: Forwarder
  readonly #url: string
  #stream: EventStream | undefined
  #is_ready = false
  #left: number
  #failure: unknown
  #exit: number = exits.done

  constructor(context: Context, options: ListenOptions, forwarder: Forwarder, url: string) {
    this.#context = context
    this.#options = options
    this.#forwarder = forwarder
    this.#url = url
    this.#left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  }

  async run(): Promise<number> {
    const { timeout } = this.#context
    const { after, event } = this.#options
    const stream = openEventStream(this.#context.client(), {
      forward: true,
      types: event?.join(","),
      headers: { "x-svc-listen-secret": listenSecret(this.#context) },
      ...(after !== undefined && { start: { after, not_before: undefined } }),
      cursor: () => this.#forwarder.cursor,
      onFrame: (frame) => this.#onFrame(frame),
      onState: tellLink(this.#context),
    })
    this.#stream = stream
    onInterrupt(() => {
      this.#exit = exits.interrupted
      stream.close()
    })
    const timer = timeout === undefined ? undefined : setTimeout(() => stream.close(), timeout)
    await stream.ended
    clearTimeout(timer)
    if (this.#failure !== undefined) throw this.#failure
    if (this.#exit === exits.done) await this.#forwarder.idle()
    return this.#exit
  }

  /** Deliveries run concurrently: the next frame does not wait for the receiver. */
  async #onFrame(frame: Frame): Promise<void> {
    if (frame.type === "ready") await this.#ready(frame.secret)
    if (frame.type === "delivery") this.#forward(frame).catch((error) => this.#fail(error))
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

  async #forward(delivery: StreamDelivery) {
    const at = new Date(millis()).toISOString()
    const { forwarded, is_new } = await this.#forwarder.forward(delivery)
    this.#stream?.send({
      type: "result",
      delivery_id: delivery.delivery_id,
      response_status: forwarded.status,
      response_body: forwarded.body,
    })
    if (!is_new) return
    const { event_id, event_type, status, error, duration_ms } = forwarded
    const record = { type: "delivery", at, event_type, event_id, response_status: status, error }
    const human = () => deliveryLine(at, forwarded, this.#context)
    await this.#context.output.line({ ...record, duration_ms }, human)
    this.#left -= 1
    if (this.#left === 0) this.#stream?.close()
  }

  #fail(error: unknown) {
    this.#failure ??= error
    this.#stream?.close()
  }
}

/** `12:00:01.102 email.delivered evt_… → 200 (12 ms)`, the id by its end on a narrow terminal. */
function deliveryLine(
  at: string,
  forwarded: ForwardedDelivery,
  { paint, terminal }: Context,
): string {
  const { event_id, event_type, status, error, duration_ms } = forwarded
  const is_good = status !== null && status >= 200 && status < 300
  const answer = cleanLine(status === null ? (error ?? "no answer") : String(status))
  const shown = is_good ? paint.green(answer) : paint.red(`${answer} ✗`)
  const what = `${cleanLine(event_type)} ${lineId(cleanLine(event_id), terminal)}`
  return `${paint.dim(clockTime(at))} ${what} → ${shown} ${paint.dim(`(${duration_ms} ms)`)}`
}

const RECEIVER_MILLISECONDS = 30_000

interface StreamDelivery {
  delivery_id: string
  headers: Record<string, string>
  body: string
}

interface ForwardedDelivery extends PostResult {
  event_id: string
  event_type: string
}

interface PendingForward {
  event_id: string
  done: boolean
  forwarded: Promise<ForwardedDelivery>
}

/**
 * Carries deliveries to a receiver, each event once: what the server sends again after a reconnect
 * was either forwarded already, or is on its way.
 */
class Forwarder {
  readonly #url: string
  readonly #skip_verify: boolean | undefined
  /** In the order of the feed, from the first that is not done. */
  readonly #in_flight: PendingForward[] = []
  #cursor: string | undefined

  constructor(url: string, skip_verify: boolean | undefined) {
    this.#url = url
    this.#skip_verify = skip_verify
  }

  /** The last event before which everything has been forwarded. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  /** Resolves when everything on its way has arrived. */
  async idle(): Promise<void> {
    await Promise.all(this.#in_flight.map(({ forwarded }) => forwarded))
  }

  /** What the receiver answered, and whether it was asked only now. */
  async forward(
    delivery: StreamDelivery,
  ): Promise<{ forwarded: ForwardedDelivery; is_new: boolean }> {
    const event_id = delivery.headers["webhook-id"] ?? delivery.delivery_id
    const pending_one = this.#in_flight.find((pending) => pending.event_id === event_id)
    if (pending_one) return { forwarded: await pending_one.forwarded, is_new: false }
    const pending: PendingForward = {
      event_id,
      done: false,
      forwarded: this.#post(event_id, delivery),
    }
    this.#in_flight.push(pending)
    const forwarded = await pending.forwarded
    pending.done = true
    while (this.#in_flight[0]?.done) this.#cursor = this.#in_flight.shift()?.event_id
    return { forwarded, is_new: true }
  }

  async #post(event_id: string, { headers, body }: StreamDelivery): Promise<ForwardedDelivery> {
    const request = { url: this.#url, headers, body, timeout: RECEIVER_MILLISECONDS }
    const posted = await post({ ...request, skip_verify: this.#skip_verify })
    return { ...posted, event_id, event_type: typeOf(body) }
  }
}

function typeOf(body: string): string {
  const { type } = JSON.parse(body) as { type?: unknown }
  return typeof type === "string" ? type : ""
}
