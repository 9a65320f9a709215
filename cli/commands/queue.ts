import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { HELD_QUEUE } from "../lib/email-text"
import { exits, Failure, usage } from "../lib/errors"
import type { OptionWords } from "../lib/field-flags"
import { HERE } from "../lib/flags"
import { listUpTo } from "../lib/paging"
import { own, row } from "../lib/resource"
import { ago, type Columns, coloured, count, table, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { span } from "../lib/time"
import type { HeldOptions } from "../local/held"

type OpenWork = Components["OpenWork"]
type Queue = Components["Queue"]

const stateColumns: Columns<OpenWork["by_state"][number]> = {
  QUEUE: "queue",
  STATE: coloured(({ state }) => state, { running: "green" }, "yellow"),
  COUNT: count(({ count }) => count),
  OLDEST: ({ oldest_seconds: seconds }) => (seconds === null ? "" : span(seconds)),
  NEXT: ago(({ next_attempt_at }) => next_attempt_at),
  LEASE: ago(({ lease_until }) => lease_until),
  REASON: wide(({ reason }) => reason),
}

const domainColumns: Columns<OpenWork["by_domain"][number]> = {
  DOMAIN: "domain",
  WAITING: count(({ waiting }) => waiting),
  RUNNING: count(({ running }) => running),
  PAUSED: ago(({ paused_until }) => paused_until),
  REASON: wide(({ reason }) => reason),
}

/** What waits, why, and until when: first by state and reason, then by domain. */
export function openWorkText(
  { by_state = [], by_domain = [] }: Partial<OpenWork>,
  paint: Paint,
  width: number,
): string {
  if (by_state.length === 0) return paint.dim("nothing waits")
  const parts = [table(by_state, stateColumns, width, paint)]
  if (by_domain.length > 0) parts.push(table(by_domain, domainColumns, width, paint))
  return parts.join("\n\n")
}

/** Whether a server of this machine is named, by its data or by a part of its work. */
const isHere = ({ flags }: Context, { where, dataDir, set }: HeldOptions): boolean =>
  [where, dataDir, set, flags.config].some((given) => given !== undefined)

/**
 * Changes the held work, or a part of it, on the server's own machine. Refuses what names another server
 * beside it, because this mail could be sent only once.
 */
async function changeHere(
  context: Context,
  action: "resume" | "purge",
  options: HeldOptions & QueueChoice,
  name: string | undefined,
): Promise<undefined> {
  const { changeHeld, HELD } = await import("../local/held")
  if (name !== HELD || options.domain !== undefined) {
    throw usage(
      `--where, --data-dir, --set and --config are for the queue ${HELD} only`,
      `belfry queue ${action} ${HELD} --where kind=email`,
    )
  }
  const { url, profile, apiKey } = context.flags
  if ([url, profile, apiKey].some((given) => given !== undefined)) {
    throw usage(
      "--url, --profile and --api-key name a server by HTTP, but this command works on the machine itself",
      `belfry queue ${action} ${HELD} --data-dir DIR`,
    )
  }
  return changeHeld(context, options, action)
}

const queueColumns: Columns<Queue> = {
  QUEUE: wide(({ queue }) => queue),
  WAITING: "depth",
  OLDEST: ({ oldest_seconds }) => `${oldest_seconds} s`,
  RUNNING: "running",
  "FAILED 24H": "failed_24h",
  "": {
    cell: ({ paused }) => (paused ? "paused" : ""),
    paint: (text, _, paint) => paint.yellow(text),
  },
}

const MOST_QUEUES = 1000

/** Every queue of the instance, and every domain that is paused: one that is left out would be a pause nobody sees. */
const instance: Action<object> = async (context) => {
  const route = "GET /v1/admin/queues"
  context.output.promises(fieldsOf(route))
  const { rows } = await listUpTo(context.client(), route, MOST_QUEUES)
  await context.output.list(rows, queueColumns)
}

interface QueueChoice {
  domain?: string
}

/** Only for operators, because a pause holds up every project. */
async function change(
  context: Context,
  verb: "pause" | "resume",
  { domain }: QueueChoice,
  name: string | undefined,
): Promise<undefined> {
  if ((name === undefined) === (domain === undefined)) {
    throw usage("give either a queue or --domain", `belfry queue ${verb} email`)
  }
  const queue = name ?? `email:${domain?.toLowerCase()}`
  const { output, paint } = context
  const route = `POST /v1/admin/queues/{queue}/${verb}` as const
  output.promises(fieldsOf(route))
  const { data } = await context.call(route, { params: { queue } }).catch((error) => {
    throw queue === HELD_QUEUE ? withLocalWay(error) : error
  })
  const now = verb === "pause" ? "is paused" : "continues"
  await output.record(data, () => `${paint.green("✓")} ${data.queue} ${now}, ${data.depth} waiting`)
  if (verb === "pause") await output.next(`belfry queue resume ${data.queue}`)
}

/** Operators are people: an instance without one resumes its held work on its machine. */
function withLocalWay(error: unknown): unknown {
  if (!(error instanceof Failure) || error.exit !== exits.unauthorized) return error
  const { exit, code, message, details } = error
  const hint = `on the machine of the server: belfry queue resume ${HELD_QUEUE} --data-dir DIR`
  return new Failure(exit, code, message, { details, hint })
}

const WHERE: readonly OptionWords[] = [
  ["--where <part>", "only this part: kind=,project=,older_than=,domain= (local)"],
  ...HERE,
]

const pause: Action<QueueChoice> = (context, which, name) => change(context, "pause", which, name)

const resume: Action<QueueChoice & HeldOptions> = (context, which, name) =>
  isHere(context, which)
    ? changeHere(context, "resume", which, name)
    : change(context, "resume", which, name)

const purge: Action<HeldOptions> = (context, which, name) =>
  changeHere(context, "purge", which, name)

/** Work that waits: of the project, and of the whole instance for its operator. */
export const queueRows = [
  row("list", "GET /v1/queue", {
    about: "list the project's open work by queue, state, reason and domain",
    shown: openWorkText,
  }),
  row("domains", "GET /v1/queue", {
    about: "list the project's waiting mail by recipient domain",
    example: ["", "--json=domain,paused_until,reason"],
    print: ({ output }, { data }) => output.list(data.by_domain, domainColumns),
  }),
  own("instance", instance, {
    about: "list all queues of the instance and their pauses (operators)",
  }),
  own("pause [queue]", pause, {
    about: "pause a queue, or the mail to one domain (operators)",
    example: ["email", "--domain example.com"],
    options: [["--domain <domain>", "pause only the mail to this domain"]],
  }),
  own("resume [queue]", resume, {
    about: "resume a paused queue or domain, or work held after a restore (operators)",
    example: [
      "--domain example.com",
      "held_after_restore --where kind=email,older_than=2h --dry-run",
      "held_after_restore --data-dir restored",
    ],
    options: [["--domain <domain>", "resume the mail to this domain"], ...WHERE],
  }),
  own("purge <queue>", purge, {
    about: "drop work that is held after a restore, on the server's own machine",
    word: "held_after_restore",
    example: ["--where kind=webhook --dry-run", "--where domain=example.com --yes"],
    options: WHERE,
  }),
]
