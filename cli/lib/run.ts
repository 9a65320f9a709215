import type { Command } from "commander"
import { type Action, openContext } from "./context"
import { globalFlags, ownOptions } from "./flags"
import { isShortId } from "./id-kinds"

/** The action of a command, which gets its context, its options and its arguments. */
export const run = <Options>(action: Action<Options>) =>
  async function (this: Command): Promise<void> {
    const { context, options, words } = await expanded<Options & object>(this)
    process.exitCode = (await action(context, options, ...words)) ?? 0
  }

/** An action whose module is loaded only when it runs, because it is large. */
export const later =
  <Options>(load: () => Promise<Action<Options>>): Action<Options> =>
  async (context, options, ...words) =>
    (await load())(context, options, ...words)

/** What was typed, with whole ids in the place of the endings that tables show. */
async function expanded<Options extends object>(command: Command) {
  const flags = globalFlags(command)
  const context = openContext(flags)
  const options = ownOptions<Options>(command)
  const given = [...command.args, ...Object.values(options), flags.account, flags.project]
  const is_local = "system" in options
  if (is_local || !given.some(isShortId)) return { context, options, words: command.args }
  const { expandArguments, expandOptions, expandAccountFlags } = await import("./short-ids")
  const there = openContext(await expandAccountFlags(flags, command))
  return {
    context: there,
    options: await expandOptions(there, command, options),
    words: await expandArguments(there, command),
  }
}

/** Collects an option that may be given several times. */
export const several = (value: string, before: string[] | undefined): string[] => [
  ...(before ?? []),
  value,
]
