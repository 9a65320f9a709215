import type { Action } from "./context"
import type { Envelope } from "./records"
import type { Column } from "./table"
import { fields } from "./table"

type EventType = {
  type: string
  category: string
  description: string
  fields: { name: string; type: string; nullable: boolean; description: string }[]
  example: Envelope
}

const columns: Column<EventType>[] = [
  { title: "TYPE", cell: ({ type }) => type },
  { title: "CATEGORY", cell: ({ category }) => category },
  { title: "WHEN", cell: ({ description }) => description, flexible: true },
]

interface TypeOptions {
  category?: string
}

/** What can happen, with fields and examples. */
export const types: Action<TypeOptions> = async (context, { category }) => {
  const { data } = await context.client().get<EventType[]>("/v1/webhooks/events", { category })
  await context.output.list(data, columns)
  return undefined
}

/** One event, as webhooks carry it. */
export const get: Action<object> = async (context, _, id = "") => {
  const path = `/v1/events/${encodeURIComponent(id)}`
  const { data } = await context.client().get<Envelope>(path)
  const { id: event, type, created_at } = data
  const head: [string, unknown][] = [
    ["id", event],
    ["type", type],
    ["created", created_at],
  ]
  const human = () => `${fields(head, context.paint)}\n\n${JSON.stringify(data.data, null, 2)}`
  await context.output.record(data, human)
  return undefined
}
