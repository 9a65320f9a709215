import type { Command } from "commander"
import { type Action, openContext } from "./context"
import { globalFlags, ownOptions } from "./global-flags"

/** Loads what a command does only when it runs, and hands it its context, options and arguments. */
export function lazily<Options>(load: () => Promise<Action<Options>>) {
  return async function (this: Command): Promise<void> {
    const context = openContext(globalFlags(this))
    const action = await load()
    process.exitCode = (await action(context, ownOptions<Options>(this), ...this.args)) ?? 0
  }
}

/** Collects an option that may be given several times. */
export const several = (value: string, before: string[] | undefined): string[] => [
  ...(before ?? []),
  value,
]

/** Flags that mean the same in every command that has them. */
export const EVENT = "--event <type>"
export const SINCE = ["--since <when>", "from this time on, or a span back: 10m, 2h, 7d"] as const
export const UNTIL = ["--until <when>", "before this time, or a span back: 10m, 2h, 7d"] as const
export const AFTER = ["--after <id>", "only what follows this event, by its id"] as const
export const ONLY_EVENT = "only this type of event, or email.*; may be repeated"

export const examples = (...lines: string[]): string =>
  `\nExample:\n${lines.map((line) => `  $ belfry ${line}`).join("\n")}`
