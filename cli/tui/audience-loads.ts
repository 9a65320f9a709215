import type { Client } from "../lib/client"
import type { Intent } from "./state"
import type { News } from "./update"

const PAGE = 100

/** Each load is asked again every few seconds: the newest publishes of one topic are enough. */
const PUBLISHES = 25

type AudienceLoad = Extract<Intent, { do: "load_topics" | "load_publishes" }>

export async function audienceNews(client: Client, intent: AudienceLoad): Promise<News> {
  if (intent.do === "load_topics") {
    const { data } = await client.call("GET /v1/topics", { query: { per_page: PAGE } })
    return { is: "topics", topics: data }
  }
  const { topic_key } = intent
  const { data } = await client.call("GET /v1/topics/{topic_key}/publishes", {
    params: { topic_key },
    query: { per_page: PUBLISHES },
  })
  return { is: "publishes", topic_key, publishes: data }
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
