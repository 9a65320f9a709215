import { counted, number } from "../lib/cells"
import type { Client } from "../lib/client"
import { Failure } from "../lib/errors"
import { HELD_QUEUE } from "../lib/message-status"
import { moment, tookText } from "../lib/time"
import type { ServerRun } from "../local/held"
import { dropCommand, type Load, newsOf, type OlderCursors, problemOf } from "./loads"
import { type Intent, whether } from "./state"
import type { News } from "./update"

interface ActionParts {
  client: Client
  dispatch(news: News): void
  /** Puts text into the clipboard of the terminal. */
  copy(text: string): void
  /** Draws the whole screen again: another program may have written to the terminal. */
  redraw(): void
  quit(): void
}

/**
 * Carries out the intents of keys and news. A load that is asked for again while it runs is done
 * once more afterwards, however often it was asked for. What fails is said, and nothing ends.
 */
export function openActions(world: ActionParts): (intent: Intent) => void {
  const cursors: OlderCursors = new Map()
  const running = new Map<string, boolean>()

  const run = async (name: string, intent: Intent) => {
    running.set(name, false)
    await perform(world, cursors, intent).catch((error) => {
      if (!(error instanceof Failure)) throw error
      world.dispatch(problemOf(intent, error))
    })
    const again = running.get(name)
    running.delete(name)
    if (again) await run(name, intent)
  }
  return (intent) => {
    if (intent.do === "quit") return world.quit()
    if (intent.do === "redraw") return world.redraw()
    if (intent.do === "copy") return copied(world, intent.text)
    const name = JSON.stringify(intent)
    if (running.has(name)) running.set(name, isLoad(intent))
    else void run(name, intent)
  }
}

const isLoad = (intent: Intent): intent is Load => intent.do.startsWith("load_")

function copied({ copy, dispatch }: ActionParts, text: string, what_for = ""): void {
  copy(text)
  const words = ["copied", ...(what_for === "" ? [] : [`${what_for}:`]), text]
  dispatch({ is: "notice", text: words.join(" ") })
}

async function perform(world: ActionParts, cursors: OlderCursors, intent: Intent): Promise<void> {
  const { client, dispatch } = world
  if (isLoad(intent)) return dispatch(await newsOf(client, cursors, intent))
  if (intent.do === "ask_drop") return await askDrop(world, intent.server)
  if (intent.do === "copy" || intent.do === "redraw" || intent.do === "quit") return
  dispatch({ is: "notice", text: await change(client, intent) })
}

/** On the machine of the server it asks first. Elsewhere it copies the command, which asks by itself. */
async function askDrop(world: ActionParts, server: ServerRun): Promise<void> {
  const { countHeldHere, told } = await import("../local/held")
  const counts = await countHeldHere(server)
  if (!counts) return copied(world, dropCommand(server), "for the machine of the server")
  const question = whether(`Drop ${told(counts)}? This cannot be undone.`, {
    do: "drop_held",
    server,
  })
  world.dispatch({ is: "asked", screen: "box", question })
}

type Change = Exclude<Intent, Load | { do: "ask_drop" | "copy" | "redraw" | "quit" }>

/** Does it, and answers what to say about it. */
async function change(client: Client, intent: Change): Promise<string> {
  switch (intent.do) {
    case "resend": {
      const input = { params: { email_id: intent.id }, body: {} }
      return `sent again as ${(await client.call("POST /v1/emails/{email_id}/resend", input)).data.id}`
    }
    case "redeliver": {
      const name = "POST /v1/inbound-emails/{inbound_id}/redeliver"
      const { data } = await client.call(name, { params: { inbound_id: intent.id } })
      const { length } = data.deliveries
      return `${counted(length, "delivery", "deliveries")} ${length === 1 ? "is" : "are"} sent again`
    }
    case "cancel_publish": {
      const name = "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel"
      const { topic_key, id } = intent
      await client.call(name, { params: { topic_key, publish_id: id } })
      return "the rest of the publish is cancelled"
    }
    case "make_backup":
      return `the backup runs as job ${(await client.call("POST /v1/admin/backups")).data.id}`
    case "drop_held": {
      const { dropHeldHere, told } = await import("../local/held")
      return `dropped: ${told(await dropHeldHere(intent.server))}`
    }
    case "release_held":
      await client.call("POST /v1/admin/queues/{queue}/resume", { params: { queue: HELD_QUEUE } })
      return "the held work is sent now"
    default:
      return await changeWebhook(client, intent)
  }
}

async function changeWebhook(
  client: Client,
  intent: Extract<Change, { webhook_id: string }>,
): Promise<string> {
  const params = { webhook_id: intent.webhook_id }
  const route = "POST /v1/webhooks/{webhook_id}" as const
  switch (intent.do) {
    case "retry": {
      const delivery = { ...params, delivery_id: intent.id }
      await client.call(`${route}/deliveries/{delivery_id}/retry`, { params: delivery })
      return "the delivery is attempted again"
    }
    case "replay": {
      const body = { since: moment(intent.since, "since"), status: intent.status }
      const { data } = await client.call(`${route}/replay`, { params, body })
      return `the replay runs as job ${data.id}`
    }
    case "test": {
      const { data } = await client.call(`${route}/test`, { params, body: {} })
      const { delivered, response_status: status, duration_ms: took, error } = data
      const answer = [status, error].filter(Boolean).join(" ")
      return `test ${delivered ? "delivered" : "failed ✗"}: ${answer} in ${tookText(took ?? 0)}`
    }
    case "enable": {
      const body = { replay: intent.replay }
      const { data } = await client.call(`${route}/enable`, { params, body })
      if (intent.replay === "held") return "enabled; the held events are sent now"
      if (data.held_count === 0) return "enabled"
      return `enabled; ${number(data.held_count)} held events wait: R replays them`
    }
    default:
      await client.call(`${route}/${intent.do}`, { params })
      return `${intent.do}d; its events are held for 7 days`
  }
}
