import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { given, wholeNumber } from "../lib/input"
import { examples, run } from "../lib/run"
import { fields } from "../lib/table"

interface ChaosOptions {
  bounce?: string
  defer?: string
  refuse?: string
  delay?: string
  off?: true
}

/** Makes mail go wrong in the embedded mailbox, or shows what goes wrong there. */
export function defineChaos(mailbox: Command): void {
  mailbox
    .command("chaos")
    .description("make a share of the project's mail go wrong; without flags, show the shares")
    .option("--bounce <share>", "share of the recipients whose mail bounces, from 0 to 1")
    .option("--defer <share>", "share of the recipients whose mail is deferred once")
    .option("--refuse <share>", "share of the recipients whose mail is refused by policy")
    .option("--delay <ms>", "milliseconds before each mail is answered, at most 60000")
    .option("--off", "end it: all mail is delivered again")
    .addHelpText(
      "after",
      examples("mailbox chaos --bounce 0.1 --defer 0.2 --delay 500", "mailbox chaos --off"),
    )
    .action(run(chaos))
}

/** Flags that are absent are 0, as in the route. */
const chaos: Action<ChaosOptions> = async (context, { off, ...flags }) => {
  const wanted = given({
    bounce_rate: shareOf(flags.bounce, "--bounce"),
    defer_rate: shareOf(flags.defer, "--defer"),
    refuse_rate: shareOf(flags.refuse, "--refuse"),
    delay_ms: flags.delay === undefined ? undefined : wholeNumber(flags.delay, "--delay"),
  })
  const is_change = Object.keys(wanted).length > 0
  if (off && is_change) throw usage("--off ends the chaos", "leave out the other flags")
  const { data } =
    off || is_change
      ? await context.call("PUT /v1/mailbox/chaos", { body: wanted })
      : await context.call("GET /v1/mailbox/chaos")
  await context.output.record(data, () => fields(linesOf(data), context.paint))
}

const linesOf = ({ bounce_rate, defer_rate, refuse_rate, delay_ms }: Components["MailboxChaos"]) =>
  Object.entries({
    bounces: percent(bounce_rate),
    deferred: percent(defer_rate),
    refused: percent(refuse_rate),
    delay: `${delay_ms} ms`,
  })

const percent = (share: number) => `${Math.round(share * 1000) / 10} %`

function shareOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === "" || !(value >= 0 && value <= 1)) {
    throw usage(`${option}: "${text}" is no share`, "give a number from 0 to 1, such as 0.1")
  }
  return value
}
