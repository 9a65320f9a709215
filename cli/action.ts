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

export const examples = (...lines: string[]): string =>
  `\nExample:\n${lines.map((line) => `  $ belfry ${line}`).join("\n")}`
