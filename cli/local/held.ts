import type { HeldAnswer, HeldCounts, HeldFilter, HeldOrder } from "../../src/operations/held-work"
import type { Context } from "../lib/context"
import { usage } from "../lib/errors"
import { confirm } from "../lib/prompts"
import { duration } from "../lib/time"
import { runOrder } from "./admin-socket"
import type { LocalOptions } from "./settings"

/** The queue of the work that was open in a restored copy. */
export const HELD = "held_after_restore"

export interface HeldOptions extends LocalOptions {
  where?: string
}

const WORDS = ["kind", "project", "older_than", "domain"] as const
const FIELDS = ["queue", "messages", "webhook_deliveries", "jobs"]

/** Resumes or drops a part of the held work. With --dry-run it only counts that part. */
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
  if (action === "purge") {
    const what = `${told(counts)} end now and are never sent. This cannot be undone.`
    await confirm(context, what, String(total(counts)))
  }
  const changed = await inParts(context, counts, (after) => send({ action, after }))
  const done = action === "resume" ? "continue" : "were dropped"
  await output.record({ queue: HELD, ...changed }, () => {
    return `${paint.green("✓")} ${told(changed)} ${done}`
  })
}

const REHEARSES = { rehearses: true }

/** An interrupted command has changed the rows that it reported. The same command again changes the rest. */
async function inParts(
  { output }: Context,
  all: HeldCounts,
  step: (after: HeldOrder["after"]) => Promise<HeldAnswer>,
): Promise<HeldCounts> {
  const changed: HeldCounts = { messages: 0, webhook_deliveries: 0, jobs: 0 }
  let after: HeldOrder["after"]
  for (;;) {
    const { counts, next } = await step(after)
    changed.messages += counts.messages
    changed.webhook_deliveries += counts.webhook_deliveries
    changed.jobs += counts.jobs
    output.passing(next ? `${total(changed)} of ${total(all)}` : "")
    if (!next) return changed
    after = next
  }
}

const total = ({ messages, webhook_deliveries, jobs }: HeldCounts) =>
  messages + webhook_deliveries + jobs

const told = ({ messages, webhook_deliveries, jobs }: HeldCounts) =>
  `${messages} messages, ${webhook_deliveries} deliveries and ${jobs} jobs`

/** Reads a filter such as `kind=email,older_than=2h`. Held work must match every word of it. */
function filterOf(text: string | undefined): HeldFilter {
  const filter: HeldFilter = {}
  if (text === undefined) return filter
  for (const part of text.split(",")) {
    const [name = "", ...rest] = part.trim().split("=")
    const value = rest.join("=")
    const word = WORDS.find((known) => known === name)
    if (!word || value === "" || word in filter) {
      throw usage(
        `--where: "${part}" is not one of ${WORDS.map((known) => `${known}=…`).join(", ")}`,
        "write each word once: --where kind=email,older_than=2h",
      )
    }
    if (word === "older_than") filter[word] = duration(value, "--where older_than") / 1000
    else filter[word] = value
  }
  return filter
}
