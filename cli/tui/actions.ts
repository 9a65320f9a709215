import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { given } from "../lib/input"
import { moment } from "../lib/time"
import type { ServerRun } from "../local/held"
import { audienceNews, cancelPublish } from "./audience-loads"
import { boxFacts, changeBox, dropCommand, dropQuestion } from "./box-loads"
import { number, spanText } from "./cells"
import type { MessageFilter } from "./filter"
import { updateOfEmail } from "./message-rows"
import type { Intent, MessageParts, Tab } from "./state"
import type { News } from "./update"

const PAGE = 100

/** Requests for one page of a filter that finds few messages. */
const MOST_LOOKS = 10

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
  const cursors = new Map<string, string | null>()
  const running = new Map<string, boolean>()

  const run = async (name: string, intent: Intent) => {
    running.set(name, false)
    await perform(world, cursors, intent).catch((error) => {
      if (!(error instanceof Failure)) throw error
      world.dispatch(problemOf(intent, messageOf(error, intent), error))
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
    if (running.has(name)) running.set(name, intent.do.startsWith("load_"))
    else void run(name, intent)
  }
}

function copied({ copy, dispatch }: ActionParts, text: string, what_for = ""): void {
  copy(text)
  const words = ["copied", ...(what_for === "" ? [] : [`${what_for}:`]), text]
  dispatch({ is: "notice", text: words.join(" ") })
}

function messageOf({ exit, message, details }: Failure, intent: Intent): string {
  if (exit === exits.unauthorized && typeof details.required_scope === "string") {
    return `this needs a key with the scope ${details.required_scope}`
  }
  const is_screen = SCREEN_LOADS.includes(intent.do)
  if (exit === exits.not_found && is_screen) return "this server does not have this screen"
  return message
}

const SCREEN_LOADS: Intent["do"][] = [
  ...(["load_endpoints", "load_queue", "load_inbound"] as const),
  ...(["load_reputation", "load_topics", "load_box"] as const),
]

/** Said where the answer would have stood. */
function problemOf(intent: Intent, problem: string, { details }: Failure): News {
  switch (intent.do) {
    case "load_message":
      return { is: "message", id: intent.id, tab: intent.tab, parts: {}, problem }
    case "load_endpoints":
      return { is: "endpoints", problem }
    case "load_delivery":
      return { is: "delivery", id: intent.id, found: null, problem }
    case "load_queue":
      return { is: "queue", problem }
    case "load_inbound":
      return { is: "inbound", problem }
    case "load_reputation":
      return { is: "reputation", problem }
    case "load_topics":
      return { is: "topics", search: intent.search ?? "", problem }
    case "load_box":
      return { is: "box", problem }
    case "load_subscriber":
      return { is: "subscriber", name: intent.name, found: null, problem }
    case "load_inbound_mail":
      return { is: "inbound_mail", id: intent.id, found: null, problem }
    default:
      return details.required_scope === "webhooks:write"
        ? { is: "read_only", why: problem }
        : { is: "notice", text: problem }
  }
}

type Cursors = Map<string, string | null>

async function perform(world: ActionParts, cursors: Cursors, intent: Intent): Promise<void> {
  const { client, dispatch } = world
  switch (intent.do) {
    case "load_older":
      return await loadOlder(world, cursors, intent.filter)
    case "load_newest": {
      const { since: _, ...fields } = intent.filter.query
      const query = given({ ...fields, per_page: PAGE })
      const { data } = await client.call("GET /v1/emails", { query })
      return dispatch({ is: "facts", facts: data.map(updateOfEmail) })
    }
    case "load_message":
      return dispatch({
        is: "message",
        id: intent.id,
        tab: intent.tab,
        parts: await partsOf(client, intent.id, intent.tab),
      })
    case "load_endpoints":
    case "load_deliveries":
    case "load_delivery":
      return dispatch(await webhookNews(client, intent))
    case "load_queue":
      return dispatch({ is: "queue", work: (await client.call("GET /v1/queue")).data })
    case "load_reputation": {
      const { data } = await client.call("GET /v1/accounts/me/reputation")
      return dispatch({ is: "reputation", found: data })
    }
    case "load_inbound": {
      const { data } = await client.call("GET /v1/inbound-emails", { query: { per_page: PAGE } })
      return dispatch({ is: "inbound", mails: data })
    }
    case "load_inbound_mail": {
      const params = { inbound_id: intent.id }
      const { data } = await client.call("GET /v1/inbound-emails/{inbound_id}", { params })
      return dispatch({ is: "inbound_mail", id: intent.id, found: data })
    }
    case "load_topics":
    case "load_publishes":
    case "load_subscriber":
      return dispatch(await audienceNews(client, intent))
    case "load_box":
      return dispatch({ is: "box", found: await boxFacts(client) })
    case "release_held":
    case "drop_held":
    case "make_backup":
      dispatch({ is: "notice", text: await changeBox(client, intent) })
      return perform(world, cursors, { do: "load_box" })
    case "ask_drop":
      return await askDrop(world, intent.server)
    case "cancel_publish":
      dispatch({ is: "notice", text: await cancelPublish(client, intent) })
      return perform(world, cursors, { do: "load_publishes", topic_key: intent.topic_key })
    case "resend":
    case "redeliver":
    case "retry":
    case "replay":
    case "test":
      return dispatch({ is: "notice", text: await change(client, intent) })
    case "enable":
    case "disable":
    case "pause":
      dispatch({ is: "notice", text: await switched(client, intent) })
      return perform(world, cursors, { do: "load_endpoints" })
  }
}

/** On the machine of the server it asks first. Elsewhere it copies the command, which asks by itself. */
async function askDrop(world: ActionParts, server: ServerRun): Promise<void> {
  const question = await dropQuestion(server)
  if (question) return world.dispatch({ is: "asked", screen: "box", question })
  copied(world, dropCommand(server), "for the machine of the server")
}

type WebhookLoad = Extract<Intent, { do: "load_endpoints" | "load_deliveries" | "load_delivery" }>

async function webhookNews(client: Client, intent: WebhookLoad): Promise<News> {
  const query = { per_page: PAGE }
  if (intent.do === "load_endpoints") {
    return { is: "endpoints", endpoints: (await client.call("GET /v1/webhooks", { query })).data }
  }
  const { webhook_id } = intent
  if (intent.do === "load_deliveries") {
    const params = { webhook_id }
    const name = "GET /v1/webhooks/{webhook_id}/deliveries"
    const { data } = await client.call(name, { params, query })
    return { is: "deliveries", webhook_id, deliveries: data }
  }
  const params = { webhook_id, delivery_id: intent.id }
  const { data } = await client.call(DELIVERY, { params })
  return { is: "delivery", id: intent.id, found: data }
}

const DELIVERY = "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}"

/** Pages are walked by cursor, one walk for each filter; at its end nothing more is asked for. */
async function loadOlder(
  { client, dispatch }: ActionParts,
  cursors: Cursors,
  filter: MessageFilter,
) {
  const cursor = cursors.get(filter.text)
  const { since, ...fields } = filter.query
  const created_after = since === undefined ? undefined : moment(since, "since")
  const query = given({ ...fields, created_after, per_page: PAGE, cursor: cursor ?? undefined })
  let found = cursor === null ? undefined : await client.call("GET /v1/emails", { query })
  for (let looks = 1; looks < MOST_LOOKS && found?.meta.incomplete; looks++) {
    if (found.data.length > 0) break
    const further = { ...query, cursor: found.meta.next_cursor ?? undefined }
    found = await client.call("GET /v1/emails", { query: given(further) })
  }
  const next = found?.meta.next_cursor ?? null
  cursors.set(filter.text, next)
  const facts = found?.data.map(updateOfEmail) ?? []
  dispatch({ is: "older", facts, more: next !== null, filter: filter.text })
}

async function partsOf(client: Client, id: string, tab: Tab): Promise<MessageParts> {
  const input = { params: { email_id: id } }
  switch (tab) {
    case "Timeline": {
      const [found, attempts] = await Promise.all([
        client.call("GET /v1/emails/{email_id}", input),
        client.call("GET /v1/emails/{email_id}/attempts", input),
      ])
      const reports = await reportsOn(client, found.data)
      return { email: found.data, attempts: attempts.data, reports }
    }
    case "Events":
      return { events: (await client.call("GET /v1/emails/{email_id}/events", input)).data }
    case "Tracking":
      return { tracking: (await client.call("GET /v1/emails/{email_id}/tracking", input)).data }
    case "Text":
      return { content: (await client.call("GET /v1/emails/{email_id}/content", input)).data }
    default:
      return {
        raw: new TextDecoder().decode(await client.call("GET /v1/emails/{email_id}/raw", input)),
      }
  }
}

/** Servers report on a message, at the latest when it has bounced. A key may not read received mail. */
async function reportsOn(client: Client, { id, thread_id, timeline }: Components["Email"]) {
  if (!timeline.some(({ type }) => REPORTED.test(type))) return []
  const query = { thread_id: thread_id ?? id, kind: "bounce", per_page: PAGE } as const
  try {
    const { data } = await client.call("GET /v1/inbound-emails", { query })
    return data.filter(({ replied_to_message_id }) => replied_to_message_id === id).reverse()
  } catch (error) {
    if (error instanceof Failure) return []
    throw error
  }
}

const REPORTED = /^email\.(soft_)?bounced$/

type Change = Extract<Intent, { do: "resend" | "redeliver" | "retry" | "replay" | "test" }>

/** Does it, and answers what to say about it. */
async function change(client: Client, intent: Change): Promise<string> {
  switch (intent.do) {
    case "resend": {
      const { data } = await client.call("POST /v1/emails/{email_id}/resend", {
        params: { email_id: intent.id },
        body: {},
      })
      return `sent again as ${data.id}`
    }
    case "redeliver": {
      const params = { inbound_id: intent.id }
      const name = "POST /v1/inbound-emails/{inbound_id}/redeliver"
      const { deliveries } = (await client.call(name, { params })).data
      return `${number(deliveries.length)} ${deliveries.length === 1 ? "delivery is" : "deliveries are"} sent again`
    }
    case "retry":
      await client.call("POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", {
        params: { webhook_id: intent.webhook_id, delivery_id: intent.id },
      })
      return "the delivery is attempted again"
    case "replay": {
      const body = { since: moment(intent.since, "since"), status: intent.status }
      const { data } = await client.call("POST /v1/webhooks/{webhook_id}/replay", {
        params: { webhook_id: intent.webhook_id },
        body,
      })
      return `the replay runs as job ${data.id}`
    }
    case "test": {
      const { data } = await client.call("POST /v1/webhooks/{webhook_id}/test", {
        params: { webhook_id: intent.webhook_id },
        body: {},
      })
      const { delivered, response_status: status, duration_ms: took, error } = data
      const answer = [status, error].filter(Boolean).join(" ")
      return `test ${delivered ? "delivered" : "failed ✗"}: ${answer} in ${spanText(took ?? 0)}`
    }
  }
}

type Switch = Extract<Intent, { do: "enable" | "disable" | "pause" }>

/** Does it, and answers what to say about it. */
async function switched(client: Client, intent: Switch): Promise<string> {
  const params = { webhook_id: intent.webhook_id }
  if (intent.do !== "enable") {
    await client.call(`POST /v1/webhooks/{webhook_id}/${intent.do}`, { params })
    return `${intent.do}d; its events are held for 7 days`
  }
  const body = { replay: intent.replay }
  const { data } = await client.call("POST /v1/webhooks/{webhook_id}/enable", { params, body })
  if (intent.replay === "held") return "enabled; the held events are sent now"
  const left =
    data.held_count > 0 ? `; ${number(data.held_count)} held events wait: R replays them` : ""
  return `enabled${left}`
}
