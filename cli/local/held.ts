import type { HeldAnswer, HeldCounts, HeldFilter, HeldOrder } from "../../src/operations/held-work"
import type { Context } from "../lib/context"
import { Failure, usage } from "../lib/errors"
import { confirm } from "../lib/prompts"
import { duration } from "../lib/time"
import { noServer, runOrder, sendOrder } from "./admin-socket"
import { socketIn } from "./find-server"
import type { LocalOptions } from "./settings"

/** The queue of the work that was open in a restored copy. */
export const HELD = "held_after_restore"

export interface HeldOptions extends LocalOptions {
  where?: string
}

const FIELDS = ["queue", "messages", "webhook_deliveries", "jobs"]

/**
 * Resumes or drops the held work of this machine's server, or a part of it. With --dry-run it only counts. It
 * asks before anything is dropped, and before all is sent.
 */
export async function changeHeld(
  context: Context,
  options: HeldOptions,
  action: "resume" | "purge",
): Promise<undefined> {
  const { output, flags, paint } = context
  output.promises(FIELDS)
  const filter = filterOf(options.where)
  const send = (order: Omit<HeldOrder, "filter">) =>
    runOrder<HeldAnswer>(context, options, { operation: "held_work", ...order, filter }, REHEARSES)
  const { counts } = await send({ action: "count" })
  if (flags.dryRun) {
    const would = action === "resume" ? "would be sent" : "would be dropped"
    await output.record({ queue: HELD, ...counts }, () => `${told(counts)} ${would}`)
    return
  }
  const is_whole = options.where === undefined && total(counts) > 0
  const end = action === "purge" ? DROPS : is_whole ? RELEASES : undefined
  if (end) await confirm(context, `${told(counts)} ${end}`, String(total(counts)))
  const changed = await inParts(
    (after) => send({ action, after }),
    (done) => output.passing(`${total(done)} of ${total(counts)}`),
  )
  output.passing("")
  const done = action === "resume" ? "released" : "dropped"
  await output.record({ queue: HELD, ...changed }, () => {
    return `${paint.green("✓")} ${told(changed)} ${done}`
  })
}

const DROPS = "will be dropped and never sent. This cannot be undone."
const RELEASES = "will be released and sent. Another server may have sent them since."
const REHEARSES = { rehearses: true }

/** An interrupted command has changed the rows that it reported. The same command again changes the rest. */
async function inParts(
  step: (after: HeldOrder["after"]) => Promise<HeldAnswer>,
  report: (changed: HeldCounts) => void = () => {},
): Promise<HeldCounts> {
  const changed: HeldCounts = { messages: 0, webhook_deliveries: 0, jobs: 0 }
  let after: HeldOrder["after"]
  do {
    const { counts, next } = await step(after)
    for (const [table, rows] of Object.entries(counts)) changed[table as keyof HeldCounts] += rows
    if (next) report(changed)
    after = next ?? undefined
  } while (after)
  return changed
}

const total = ({ messages, webhook_deliveries, jobs }: HeldCounts) =>
  messages + webhook_deliveries + jobs

/** `3 messages, 1 delivery and 0 jobs`. */
export const told = ({ messages, webhook_deliveries, jobs }: HeldCounts) =>
  `${count(messages, "message")}, ${count(webhook_deliveries, "delivery", "deliveries")} and ${count(jobs, "job")}`

const count = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`

/** A server as its report to operators names it. */
export interface ServerRun {
  data_dir: string
  run_id: string
}

/** Undefined where that server does not run on this machine, or this user may give it no orders. */
export async function countHeldHere(server: ServerRun): Promise<HeldCounts | undefined> {
  try {
    return (await sendHere(server, { action: "count" })).counts
  } catch (error) {
    const is_other = error instanceof Failure && ["conflict", "unreachable"].includes(error.code)
    if (is_other) return undefined
    throw error
  }
}

/** Drops all that the server holds. Throws Failure where it has ended, or another one runs there now. */
export const dropHeldHere = (server: ServerRun): Promise<HeldCounts> =>
  inParts((after) => sendHere(server, { action: "purge", after }))

async function sendHere({ data_dir, run_id }: ServerRun, order: Omit<HeldOrder, "filter">) {
  const what = { operation: "held_work", run_id, filter: {}, ...order } as const
  const answer = await sendOrder(socketIn(data_dir), what)
  if (answer) return answer as HeldAnswer
  throw noServer(data_dir)
}

const WORDS = ["kind", "project", "older_than", "domain"] as const
const EACH_ONCE = "write each word once: --where kind=email,older_than=2h"

/** Reads a filter such as `kind=email,older_than=2h`. Held work must match every word of it. */
function filterOf(text: string | undefined): HeldFilter {
  const filter: HeldFilter = {}
  const refuse = (why: string) => usage(`--where: ${why}`, EACH_ONCE)
  for (const part of text?.split(",") ?? []) {
    const [, name, value = ""] = /^\s*([^=]*)=?(.*?)\s*$/s.exec(part) ?? []
    const word = WORDS.find((known) => known === name)
    if (!word) throw refuse(`"${part}" is not one of ${WORDS.map((one) => `${one}=…`).join(", ")}`)
    if (word in filter) throw refuse(`${word} is given twice`)
    if (value === "") throw refuse(`${word} has no value`)
    if (word === "older_than") filter[word] = duration(value, "--where older_than") / 1000
    else filter[word] = value
  }
  return filter
}
