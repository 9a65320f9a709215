import type { Command } from "commander"
import type { OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import { addOption, fieldOption, type OptionWords, uncapitalized } from "./field-flags"
import { flagOf, IDEMPOTENCY_KEY, LIMIT } from "./flags"
import { actionOf } from "./plain-action"
import {
  aboutOf,
  bodyArguments,
  type CommandRow,
  exampleLines,
  flagFields,
  groupOf,
  ownFlags,
  type PlainRow,
  type Resource,
} from "./resource"
import { examples, run } from "./run"

/**
 * Adds every row as a command: flags, help and behaviour come from the schemas of its route. A noun
 * that is not needed gets no commands.
 */
export function addResources(
  program: Command,
  resources: readonly Resource[],
  isNeeded: (name: string) => boolean,
): void {
  for (const { noun, about, rows, example } of resources) {
    const names = noun.split(" ")
    const group = names.reduce((parent, name) => groupOf(parent, name, about), program)
    if (noun !== "" && !isNeeded(names[0] ?? "")) continue
    for (const one of rows) addCommand(group, noun, one)
    const lines = example
      ? [example].flat()
      : rows.slice(0, 1).flatMap((one) => exampleLines(noun, one))
    if (noun !== "") group.addHelpText("after", examples(...lines))
  }
}

function addCommand(group: Command, noun: string, one: CommandRow): void {
  const { use, route, parts } = one
  const { paged, idempotent, many, summary }: Partial<OperationRow> = route ? operations[route] : {}
  const command = use === "" ? group : group.command(use)
  const about = parts.about ?? uncapitalized(summary ?? "")
  if (route) addFieldFlags(command, { ...one, route })
  if (parts.file) addOption(command, fileOption(route))
  for (const words of parts.options ?? []) addOption(command, words)
  if (idempotent) command.option(...IDEMPOTENCY_KEY)
  if (paged && many) command.option(...LIMIT)
  command.action(run(one.action ?? actionOf(noun, one as PlainRow)))
  if (use === "") return // the noun has its own help
  const note = parts.note ? `\n${parts.note}\n` : ""
  command.description(about).addHelpText("after", note + examples(...exampleLines(noun, one)))
}

const fileOption = (route: string | undefined): OptionWords => [
  "--file <file>",
  `JSON body of ${route}; other flags replace its fields`,
]

/** A flag for each field of query and body that no argument fills. */
function addFieldFlags(command: Command, one: PlainRow): void {
  const { query = {} }: OperationRow = operations[one.route]
  const { flags, aliases, file } = one.parts
  const filled = bodyArguments(one)
  for (const [field, spec] of flagFields(one)) {
    if (filled.has(field)) continue
    const name = aliases?.[field] ?? flagOf(field)
    const about = aboutOf(field, flags)
    const option = fieldOption(field, spec, { name, about, is_filter: field in query })
    command.addOption(option.makeOptionMandatory(option.mandatory && !file)) // a file may have it
  }
  for (const [field, { options }] of ownFlags(flags))
    for (const words of options) addOption(command, words, field)
}
