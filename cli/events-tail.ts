import type { Client } from "./client"
import type { Action } from "./context"
import { eventLine, startOf } from "./events"
import { follow, type Start, serverTime, startAt } from "./feed"
import { tellLink } from "./link"
import { limitOf } from "./paging"
import type { Envelope } from "./records"
import { NoUpgrade, openStream } from "./stream"
import { millis } from "./time"

interface TailOptions {
  after?: string
  since?: string
  event?: string[]
  limit?: string
}

interface Tail {
  client: Client
  start: Start
  types: string | undefined
  /** Milliseconds, if not until Ctrl-C. */
  timeout: number | undefined
  onState: (state: "open" | "lost") => void
  /** False when it has seen enough. */
  show: (event: Envelope) => Promise<boolean>
}

/** Events as they come, over the stream; where no WebSocket gets through, by asking for them. */
export const tail: Action<TailOptions> = async (context, options) => {
  const { output, paint, timeout } = context
  const client = context.client()
  let left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  const is_given = options.after !== undefined || options.since !== undefined
  const start = is_given
    ? await startOf(client, options)
    : await startAt(client, await serverTime(client))
  const show = async (event: Envelope) => {
    if (left > 0) await output.line(event, () => eventLine(event, context))
    left -= 1
    return left > 0
  }
  const onState = tellLink(context)
  const all = { client, start, types: options.event?.join(","), timeout, onState, show }
  await output.note(paint.dim("following events; Ctrl-C stops"))
  try {
    await overStream(all)
  } catch (error) {
    if (!(error instanceof NoUpgrade)) throw error
    await output.note(
      paint.yellow("the WebSocket connection fails, so events are polled over HTTP"),
    )
    await byAsking(all)
  }
  return undefined
}

async function overStream({ client, start, types, timeout, onState, show }: Tail): Promise<void> {
  const stream = openStream(client, {
    start,
    types,
    onState,
    onFrame: async (frame) => {
      if (frame.type === "event" && !(await show(frame.event))) stream.close()
    },
  })
  const timer = timeout === undefined ? undefined : setTimeout(() => stream.close(), timeout)
  await stream.ended.finally(() => clearTimeout(timer))
}

async function byAsking({ client, start, types, timeout, show }: Tail): Promise<void> {
  const deadline = timeout === undefined ? undefined : millis() + timeout
  for await (const event of follow(client, start, types, deadline)) {
    if (!(await show(event))) return
  }
}
