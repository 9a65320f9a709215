import type { Command } from "commander"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { queue_fields } from "../lib/fields"
import { listUpTo } from "../lib/paging"
import { type DomainWork, domain_columns, type Waiting, type Work } from "../lib/records"
import { examples, run } from "../lib/run"
import { type Column, table } from "../lib/table"
import { age } from "../lib/time"

/** Work that waits: of the project, and of the whole instance for its operator. */
export function define(program: Command): void {
  const queue = program
    .command("queue")
    .description("show, pause and resume waiting work")
    .addHelpText("after", examples("queue list"))

  queue
    .command("list")
    .description("list the project's open work by queue, state, reason and domain")
    .addHelpText("after", examples("queue list"))
    .action(run(list))

  queue
    .command("domains")
    .description("list the project's waiting mail by recipient domain")
    .addHelpText(
      "after",
      examples("queue domains", "queue domains --json=domain,paused_until,reason"),
    )
    .action(run(domains))

  queue
    .command("instance")
    .description("list all queues of the instance and their pauses (operators)")
    .addHelpText("after", examples("queue instance"))
    .action(run(instance))

  queue
    .command("pause [queue]")
    .description("pause a queue, or the mail to one domain (operators)")
    .option("--domain <domain>", "pause only the mail to this domain")
    .addHelpText("after", examples("queue pause email", "queue pause --domain example.com"))
    .action(run(pause))

  queue
    .command("resume [queue]")
    .description("resume a paused queue or domain (operators)")
    .option("--domain <domain>", "resume the mail to this domain")
    .addHelpText("after", examples("queue resume email", "queue resume --domain example.com"))
    .action(run(resume))
}

const states: Column<Waiting>[] = [
  { title: "QUEUE", cell: ({ queue }) => queue },
  { title: "STATE", cell: ({ state }) => state },
  { title: "COUNT", cell: ({ count }) => String(count) },
  {
    title: "OLDEST",
    cell: ({ oldest_seconds: seconds }) => (seconds === null ? "" : `${seconds} s`),
  },
  { title: "NEXT", cell: ({ next_attempt_at }) => age(next_attempt_at) },
  { title: "LEASE", cell: ({ lease_until }) => age(lease_until ?? null) },
  { title: "REASON", cell: ({ reason }) => reason ?? "", flexible: true },
]

/** The project's open work, by state and by domain. */
export const list: Action<object> = async (context) => {
  const { data } = await context.client().get<Work>("/v1/queue")
  const { paint, terminal } = context
  await context.output.record(data, () => {
    const by_state = data.by_state ?? []
    const by_domain = data.by_domain ?? []
    if (by_state.length === 0) return paint.dim("nothing waits")
    const parts = [table(by_state, states, terminal.width, paint)]
    if (by_domain.length > 0) parts.push(table(by_domain, domain_columns, terminal.width, paint))
    return parts.join("\n\n")
  })
  return undefined
}

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
