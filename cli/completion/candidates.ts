import type { Argument, Command, Option } from "commander"
import { type IdKindName, kindOfArgument, kindOfFlag } from "../id-kinds"
import { scopes } from "../scopes"
import { readWords, takesNext } from "../words"
import { shells } from "./scripts"

export interface Candidate {
  value: string
  /** One line, for shells that show it. */
  about: string
}

/** What may stand at the end of the line: words that are known, or what somebody else has to tell. */
export type Suggestion =
  | { is: "words"; words: Candidate[] }
  | { is: "files" }
  | { is: "ids"; kind: IdKindName; above: string | undefined }
  | { is: "event_types"; families: boolean }
  | { is: "profiles" }

/** Values of which the help text lists all there are. */
const CHOICE = /<(status|format|mode|kind|category|window|role|form)>/

const NOTHING: Suggestion = { is: "words", words: [] }

/** What belongs behind the words, the last of which is not finished. */
export function suggest(words: readonly string[], program: Command): Suggestion {
  const before = words.slice(0, -1)
  const current = words.at(-1) ?? ""
  if (before[0] === "help") return children(readWords(before.slice(1), program).command)
  const { command, positional } = readWords(before, program)
  const joined = joinedFlag(words)
  const flag = joined === "" ? (before.at(-1) ?? "") : joined.slice(0, -1)
  if (flag.startsWith("-") && takesNext(command, flag)) {
    const option = command.options.find(({ long, short }) => long === flag || short === flag)
    return option ? valuesOf(option) : NOTHING
  }
  const is_flag = current.startsWith("-") && !before.includes("--")
  if (is_flag) return flags(command, before)
  if (command.commands.length > 0 && positional.length === 0) return children(command)
  const all = command.registeredArguments
  const argument = all[positional.length] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined)
  return argument ? argumentsOf(command, argument, positional[0]) : NOTHING
}

/** `--status=` of an unfinished `--status=de`: its value is completed, and stands behind it. */
export const joinedFlag = (words: readonly string[]): string =>
  words.slice(0, -1).includes("--") ? "" : (/^--[\w-]+=/.exec(words.at(-1) ?? "")?.[0] ?? "")

function children(command: Command): Suggestion {
  const words = command.commands.map((child) => ({
    value: child.name(),
    about: child.description(),
  }))
  const help = command.parent ? [] : [{ value: "help", about: "print the help of a command" }]
  return { is: "words", words: [...words, ...help] }
}

/** Those that were not given yet; a flag that may be repeated always. */
function flags(command: Command, before: readonly string[]): Suggestion {
  const is_open = ({ long, parseArg, variadic, required }: Option) =>
    !before.includes(long ?? "") || variadic || (required && parseArg?.name === "several")
  const words = command.options
    .filter((option) => option.long && !option.hidden && is_open(option))
    .map(({ long, description }) => ({ value: long ?? "", about: description }))
  return { is: "words", words: [...words, { value: "--help", about: "print this help" }] }
}

const said = (...values: readonly string[]): Suggestion => ({
  is: "words",
  words: values.map((value) => ({ value, about: "" })),
})

function valuesOf({ long, flags, description, parseArg }: Option): Suggestion {
  const kind = kindOfFlag(long)
  if (kind) return { is: "ids", kind, above: undefined }
  if (/<(file|dir)(\.\.\.)?>/.test(flags)) return { is: "files" }
  if (long === "--event") return { is: "event_types", families: parseArg?.name === "several" }
  if (long === "--profile") return { is: "profiles" }
  if (long === "--scope") return said(...scopes)
  const switched = /<(\w+(?:\|\w+)+)>/.exec(flags)?.[1]
  if (switched !== undefined) return said(...switched.split("|"))
  return CHOICE.test(flags) ? said(...enumerated(description)) : NOTHING
}

/** `queued, sending or sent`: the words of a help text that lists what there is. */
export function enumerated(description: string): string[] {
  const list = /((?:[\w-]+, )*[\w-]+ (?:or|and) [\w-]+)(?=$| \(|;|,| also)/.exec(description)?.[1]
  const words = list?.replace(/^(only|as) /, "").split(/, | or | and /) ?? []
  return words.length > 1 && words.every((word) => /^[\w-]+$/.test(word)) ? words : []
}

function argumentsOf(command: Command, argument: Argument, above: string | undefined): Suggestion {
  const name = argument.name()
  const kind = kindOfArgument(command, name)
  if (kind) return { is: "ids", kind, above }
  if (name === "file") return { is: "files" }
  if (name === "shell") return said(...shells)
  if (name === "type") return { is: "event_types", families: false }
  if (name === "role") return said(...enumerated(command.description()))
  if (command.parent?.name() === "profiles" && name === "name") return { is: "profiles" }
  return NOTHING
}

/** The flags that lead to the server, as far as they stand in the line. */
export function serverFlags(words: readonly string[]): Record<string, string> {
  const names = ["profile", "url", "api-key", "account", "project", "config"]
  const found = names.flatMap((name) => {
    const at = words.lastIndexOf(`--${name}`)
    const joined = words.findLast((word) => word.startsWith(`--${name}=`))
    const value = joined?.slice(name.length + 3) ?? (at < 0 ? undefined : words[at + 1])
    return value ? [[name === "api-key" ? "apiKey" : name, value] as const] : []
  })
  return Object.fromEntries(found)
}
