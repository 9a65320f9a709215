import type { Command } from "commander"
import { addResources } from "./lib/add-resources"
import { plainNouns } from "./lib/plain-nouns"
import { resources } from "./resources"
import { createRoot, finishRoot } from "./root"

/**
 * The tree of commands; each loads its action when it runs. Given the words of a command line, it is
 * complete only below the root's commands that stand in the line: most of the start would go into the rest.
 */
export function createProgram(
  words?: readonly string[],
  writeOut: (text: string) => void = (text) => process.stdout.write(text),
): Command {
  const aliasOf = new Map(resources.map(({ noun, alias = noun }) => [noun, alias]))
  const isNeeded = (name: string) =>
    words === undefined || words.includes(name) || words.includes(aliasOf.get(name) ?? name)
  const program = createRoot(writeOut)
  addResources(program, [...resources, ...plainNouns(resources)], isNeeded)
  return finishRoot(program, isNeeded)
}
