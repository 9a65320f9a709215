import type { Action, Context } from "../context"
import { exits, usage } from "../failure"
import { onInterrupt } from "../interrupt"
import { tellLink } from "../link"
import { limitOf } from "../paging"
import { type Frame, openStream, type Stream } from "../stream"
import { lineId } from "../table"
import { cleanLine } from "../terminal"
import { clockTime, millis } from "../time"
import { receiverAddress } from "./address"
import { type Carried, Carrier, type Delivery } from "./carrier"
import { listenSecret } from "./secret"

interface ListenOptions {
  forwardTo?: string
  event?: string[]
  after?: string
  printSecret?: boolean
  skipVerify?: boolean
  limit?: string
}

/** Deliveries of the project, carried to a receiver on this machine, until Ctrl-C or --timeout. */
export const listen: Action<ListenOptions> = async (context, options) => {
  if (options.printSecret) {
    await printSecret(context)
    return exits.done
  }
  if (options.forwardTo === undefined) {
    throw usage("--forward-to is missing", "belfry listen --forward-to localhost:3000/hooks")
  }
  const url = receiverAddress(options.forwardTo)
  return await new Listening(context, options, new Carrier(url, options.skipVerify), url).run()
}

/** Alone, in a pipe too: what asks for it is `SECRET=$(belfry listen --print-secret)`. */
async function printSecret(context: Context) {
  const { output, flags } = context
  const secret = listenSecret(context)
  if (flags.json === undefined && !flags.ndjson) return await output.raw(`${secret}\n`)
  await output.record({ secret }, () => secret)
}

class Listening {
  readonly #context: Context
  readonly #options: ListenOptions
  readonly #carrier: Carrier
  readonly #url: string
  #stream: Stream | undefined
  #is_ready = false
  #left: number
  #failure: unknown
  #exit: number = exits.done

  constructor(context: Context, options: ListenOptions, carrier: Carrier, url: string) {
    this.#context = context
    this.#options = options
    this.#carrier = carrier
    this.#url = url
    this.#left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  }

  async run(): Promise<number> {
    const { timeout } = this.#context
    const { after, event } = this.#options
    const stream = openStream(this.#context.client(), {
      forward: true,
      types: event?.join(","),
      headers: { "x-svc-listen-secret": listenSecret(this.#context) },
      ...(after !== undefined && { start: { after, not_before: undefined } }),
      place: () => this.#carrier.place,
      onFrame: (frame) => this.#hear(frame),
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
    if (this.#exit === exits.done) await this.#carrier.idle()
    return this.#exit
  }

  /** Deliveries run beside each other: the next frame does not wait for the receiver. */
  async #hear(frame: Frame): Promise<void> {
    if (frame.type === "ready") await this.#ready(frame.secret)
    if (frame.type === "delivery") this.#carry(frame).catch((error) => this.#fail(error))
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

  async #carry(delivery: Delivery) {
    const at = new Date(millis()).toISOString()
    const { carried, is_new } = await this.#carrier.carry(delivery)
    this.#stream?.send({
      type: "result",
      delivery_id: delivery.delivery_id,
      response_status: carried.status,
      response_body: carried.body,
    })
    if (!is_new) return
    const { event_id, event_type, status, error, duration_ms } = carried
    const told = { type: "delivery", at, event_type, event_id, response_status: status, error }
    const human = () => deliveryLine(at, carried, this.#context)
    await this.#context.output.line({ ...told, duration_ms }, human)
    this.#left -= 1
    if (this.#left === 0) this.#stream?.close()
  }

  #fail(error: unknown) {
    this.#failure ??= error
    this.#stream?.close()
  }
}

/** `12:00:01.102 email.delivered evt_… → 200 (12 ms)`, the id by its end on a narrow terminal. */
function deliveryLine(at: string, carried: Carried, { paint, terminal }: Context): string {
  const { event_id, event_type, status, error, duration_ms } = carried
  const is_good = status !== null && status >= 200 && status < 300
  const answer = cleanLine(status === null ? (error ?? "no answer") : String(status))
  const shown = is_good ? paint.green(answer) : paint.red(`${answer} ✗`)
  const what = `${cleanLine(event_type)} ${lineId(cleanLine(event_id), terminal)}`
  return `${paint.dim(clockTime(at))} ${what} → ${shown} ${paint.dim(`(${duration_ms} ms)`)}`
}
