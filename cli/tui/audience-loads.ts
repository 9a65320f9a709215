import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import type { Intent, SubscriberFacts } from "./state"
import type { News } from "./update"

const PAGE = 100

/** Each load is asked again every few seconds: the newest publishes of one topic are enough. */
const PUBLISHES = 25

type AudienceLoad = Extract<Intent, { do: "load_topics" | "load_publishes" | "load_subscriber" }>

export async function audienceNews(client: Client, intent: AudienceLoad): Promise<News> {
  if (intent.do === "load_topics") {
    const { search = "" } = intent
    const query = { per_page: PAGE, ...(search !== "" && { search }) }
    const { data, meta } = await client.call("GET /v1/topics", { query })
    return { is: "topics", search, topics: data, more: meta.has_more }
  }
  if (intent.do === "load_subscriber") {
    const { name } = intent
    return { is: "subscriber", name, found: await partsOf(client, name) }
  }
  const { topic_key } = intent
  const { data } = await client.call("GET /v1/topics/{topic_key}/publishes", {
    params: { topic_key },
    query: { per_page: PUBLISHES },
  })
  return { is: "publishes", topic_key, publishes: data }
}

/** The newest consents, topics and messages of a subscriber. */
const NEWEST = 20

async function partsOf(client: Client, subscriber_id: string): Promise<SubscriberFacts> {
  const params = { subscriber_id }
  const query = { per_page: NEWEST }
  const one = "GET /v1/subscribers/{subscriber_id}"
  const { data: subscriber } = await client.call(one, { params })
  const own = { params: { subscriber_id: subscriber.id } }
  const [reachability, topics, consents, messages] = await Promise.all([
    readable(client.call(`${one}/reachability`, own)),
    readable(client.call(`${one}/topics`, { ...own, query })),
    readable(client.call(`${one}/consents`, { ...own, query })),
    readable(client.call("GET /v1/emails", { query: { ...query, subscriber_id: subscriber.id } })),
  ])
  return { subscriber, reachability, topics, consents, messages }
}

/** Undefined for what the key may not read. */
async function readable<Data>(answer: Promise<{ data: Data }>): Promise<Data | undefined> {
  try {
    return (await answer).data
  } catch (error) {
    if (error instanceof Failure && error.exit === exits.unauthorized) return undefined
    throw error
  }
}

/** Does it, and answers what to say about it. */
export async function cancelPublish(
  client: Client,
  { topic_key, id }: { topic_key: string; id: string },
): Promise<string> {
  const params = { topic_key, publish_id: id }
  const name = "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel"
  await client.call(name, { params })
  return "the rest of the publish is cancelled"
}
