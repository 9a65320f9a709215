import type { Action } from "./context"
import { usage } from "./failure"
import { queue_fields } from "./fields"
import { listUpTo } from "./paging"
import type { Column } from "./table"
import { type DomainWork, domain_columns } from "./work"

const MOST_QUEUES = 1000

type Queue = {
  queue: string
  depth: number
  oldest_seconds: number
  running: number
  failed_24h: number
  paused: boolean
}

/** The project's open mail by the recipients' domain: which waits, until when, and why. */
export const domains: Action<object> = async (context) => {
  const { data } = await context.client().get<{ by_domain: DomainWork[] }>("/v1/queue")
  await context.output.list(data.by_domain, domain_columns)
  return undefined
}

const of_queues: Column<Queue>[] = [
  { title: "QUEUE", cell: ({ queue }) => queue, flexible: true },
  { title: "WAITING", cell: ({ depth }) => String(depth) },
  { title: "OLDEST", cell: ({ oldest_seconds }) => `${oldest_seconds} s` },
  { title: "RUNNING", cell: ({ running }) => String(running) },
  { title: "FAILED 24H", cell: ({ failed_24h }) => String(failed_24h) },
  {
    title: "",
    cell: ({ paused }) => (paused ? "paused" : ""),
    paint: (text, _, paint) => paint.yellow(text),
  },
]

/** Every queue of the instance, and every domain that is paused. */
export const instance: Action<object> = async (context) => {
  const found = await listUpTo<Queue>(context.client(), "/v1/admin/queues", {}, MOST_QUEUES)
  await context.output.list(found.rows, of_queues)
  return undefined
}

interface Which {
  domain?: string
}

/** Only for operators, because a pause holds up every project. */
export const pause: Action<Which> = (context, which, queue) =>
  change(context, "pause", which, queue)

export const resume: Action<Which> = (context, which, queue) =>
  change(context, "resume", which, queue)

async function change(
  context: Parameters<Action<Which>>[0],
  verb: "pause" | "resume",
  { domain }: Which,
  queue: string | undefined,
): Promise<undefined> {
  if ((queue === undefined) === (domain === undefined)) {
    throw usage("give either a queue or --domain", `belfry queue ${verb} email`)
  }
  const name = queue ?? `email:${domain?.toLowerCase()}`
  const { output, paint } = context
  output.promises(queue_fields)
  const path = `/v1/admin/queues/${encodeURIComponent(name)}/${verb}`
  const { data } = await context.client().post<Queue>(path)
  const { depth } = data
  const told = verb === "pause" ? "is paused" : "continues"
  await output.record(data, () => `${paint.green("✓")} ${data.queue} ${told}, ${depth} waiting`)
  if (verb === "pause") await output.next(`belfry queue resume ${data.queue}`)
  return undefined
}
