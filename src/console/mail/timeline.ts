import type { Components } from "../../client/components"
import { call } from "../transport"

type EmailEvent = Components["EmailEvents"]["events"][number]
export type WebhookDelivery = Components["Delivery"]

/** One event of the message, and the deliveries to webhooks that it caused. */
export interface TimelineEvent {
  event: EmailEvent
  deliveries: (WebhookDelivery & { url: string })[]
}

const MOST_ENDPOINTS = 20

/** Events of a message, oldest first, each with its webhooks. */
export async function readTimeline(email_id: string): Promise<TimelineEvent[]> {
  const { data } = await call("GET /v1/emails/{email_id}/events", { params: { email_id } })
  const events = data.events.toSorted((one, other) => one.timestamp.localeCompare(other.timestamp))
  const since = events[0]?.timestamp
  const deliveries = since === undefined ? [] : await deliveriesSince(since)
  const byEvent = Map.groupBy(deliveries, ({ event_id }) => event_id)
  return events.map((event) => ({ event, deliveries: byEvent.get(event.id) ?? [] }))
}

/** Of all endpoints, the latest 100 of each. A key that may not read webhooks sees none. */
async function deliveriesSince(since: string): Promise<TimelineEvent["deliveries"]> {
  const query = { per_page: MOST_ENDPOINTS }
  const endpoints = await call("GET /v1/webhooks", { query }).catch(() => ({ data: [] }))
  const lists = await Promise.all(
    endpoints.data.map(async ({ id, url }) => {
      const { data } = await call("GET /v1/webhooks/{webhook_id}/deliveries", {
        params: { webhook_id: id },
        query: { since, per_page: 100 },
      })
      return data.map((delivery) => ({ ...delivery, url }))
    }),
  )
  return lists.flat()
}
