import type { Argument, Command, Option } from "commander"
import { scopes } from "../../../src/client/operations"
import { readWords, takesNext } from "../arguments"
import { type Context, openContext } from "../context"
import { environment } from "../environment"
import { type IdKindName, kindOfArgument, kindOfFlag } from "../id-kinds"
import { write } from "../output"
import { profilesPath, readProfiles } from "../profiles"
import { shortId } from "../table"
import { cleanLine } from "../terminal"

interface CompletionCandidate {
  value: string
  /** One line, for shells that show it. */
  about: string
}

/** What may stand at the end of the line: words, or a kind of values that the server or a file knows. */
type Suggestion =
  | { is: "words"; words: CompletionCandidate[] }
  | { is: "files" }
  | { is: "ids"; kind: IdKindName; above: string | undefined }
  | { is: "event_types"; families: boolean }
  | { is: "profiles" }

/** Values of which the help text lists all there are. */
const CHOICE = /<(status|format|mode|kind|category|window|role|form|direction|platform|scope)>/

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
const joinedFlag = (words: readonly string[]): string =>
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

const wordChoices = (...values: readonly string[]): Suggestion => ({
  is: "words",
  words: values.map((value) => ({ value, about: "" })),
})

function valuesOf({ long, flags, description, parseArg }: Option): Suggestion {
  const kind = kindOfFlag(long)
  if (kind) return { is: "ids", kind, above: undefined }
  if (/<(file|dir)(\.\.\.)?>/.test(flags)) return { is: "files" }
  if (long === "--event") return { is: "event_types", families: parseArg?.name === "several" }
  if (long === "--profile") return { is: "profiles" }
  if (long === "--scope" && parseArg?.name === "several") return wordChoices(...scopes)
  const switched = /<(\w+(?:\|\w+)+)>/.exec(flags)?.[1]
  if (switched !== undefined) return wordChoices(...switched.split("|"))
  return CHOICE.test(flags) ? wordChoices(...enumerated(description)) : NOTHING
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
  if (name === "type") return { is: "event_types", families: false }
  if (name === "role" || name === "shell") return wordChoices(...enumerated(command.description()))
  if (command.parent?.name() === "profiles" && name === "name") return { is: "profiles" }
  return NOTHING
}

/** The flags that lead to the server, as far as they stand in the line. */
function serverFlags(words: readonly string[]): Record<string, string> {
  const names = ["profile", "url", "api-key", "account", "project", "config"]
  const found = names.flatMap((name) => {
    const at = words.lastIndexOf(`--${name}`)
    const joined = words.findLast((word) => word.startsWith(`--${name}=`))
    const value = joined?.slice(name.length + 3) ?? (at < 0 ? undefined : words[at + 1])
    return value ? [[name === "api-key" ? "apiKey" : name, value] as const] : []
  })
  return Object.fromEntries(found)
}

/** A person waits for the completion. */
const PATIENCE = "1500ms"
const MOST_IDS = 50

/**
 * Answers a shell: one candidate a line, with a tab before what it is about. Nothing is an answer too,
 * and every failure is one: an error would stand in the middle of the typed line.
 */
export async function complete(
  createProgram: (words: readonly string[]) => Command,
  [shell = "", ...given]: readonly string[],
): Promise<void> {
  try {
    // Bash hands over the whole line, with the name of the program.
    const line = shell === "bash" ? splitLine(given[0] ?? "") : undefined
    const words = line?.words.slice(1) ?? given
    const suggestion = suggest(words, createProgram(words))
    const joined = joinedFlag(words)
    // A shell completes files as whole words: it finds none behind a joined flag.
    if (suggestion.is === "files") {
      return joined === "" ? await write(process.stdout, ":files\n") : undefined
    }
    const current = (words.at(-1) ?? "").slice(joined.length)
    const found = fitting(await candidates(suggestion, words), current)
    const lines = found.map(
      ({ value, about }) =>
        `${(joined + value).slice(line?.typed_before ?? 0)}\t${cleanLine(about)}\n`,
    )
    await write(process.stdout, lines.join(""))
  } catch {
    // No server, no key, no such profile: there is nothing to offer.
  }
}

interface IdSuggestion extends CompletionCandidate {
  /** The whole of an id whose end is offered. */
  whole?: string
}

/** Those that begin as the word does; of ids the ends, unless the whole of one was begun. */
function fitting(found: readonly IdSuggestion[], current: string): CompletionCandidate[] {
  const ends = found.filter(({ value }) => value.startsWith(current))
  if (ends.length > 0) return ends
  return found.flatMap(({ whole, about }) =>
    whole?.startsWith(current) ? [{ value: whole, about }] : [],
  )
}

async function candidates(
  suggestion: Suggestion,
  words: readonly string[],
): Promise<IdSuggestion[]> {
  if (suggestion.is === "words") return suggestion.words
  if (suggestion.is === "profiles") return profileNames()
  const context = openContext({ color: false, timeout: PATIENCE, ...serverFlags(words) })
  if (suggestion.is === "event_types") return await eventTypes(context, suggestion.families)
  return suggestion.is === "ids" ? await ids(context, suggestion) : []
}

async function ids(
  context: Context,
  { kind, above }: Suggestion & { is: "ids" },
): Promise<IdSuggestion[]> {
  const { newestOf, expandParent } = await import("../short-ids")
  const client = context.client()
  const place = above === undefined ? "" : await expandParent(context, kind, above)
  const rows = await newestOf(client, kind, place, MOST_IDS)
  if (kind === "domain") return rows.map(({ label }) => ({ value: label, about: "" }))
  return rows.map(({ id, label }) => ({ value: shortId(id), about: label || id, whole: id }))
}

async function eventTypes(context: Context, with_families: boolean): Promise<IdSuggestion[]> {
  const { data } = await context.call("GET /v1/webhooks/events")
  const types = data.map(({ type, description }) => ({ value: type, about: description }))
  if (!with_families) return types
  const families = new Set(data.map(({ type }) => `${type.split(".")[0]}.*`))
  return [...types, ...[...families].map((value) => ({ value, about: "all types of this group" }))]
}

function profileNames(): IdSuggestion[] {
  const { profiles } = readProfiles(profilesPath(environment))
  return Object.entries(profiles).map(([value, { url }]) => ({ value, about: url }))
}

/** Where bash breaks words beside spaces: what it has typed already must not come again. */
const BREAKS = /[:=]/g

/**
 * The words of an unfinished line, as a shell would split it; the last one is where the cursor
 * stands. Bash takes only what follows `typed_before` characters of it for its last word.
 */
export function splitLine(line: string): { words: string[]; typed_before: number } {
  const words: string[] = []
  let word = ""
  let is_word = false
  let quote = ""
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? ""
    if (quote !== "") {
      if (character === quote) quote = ""
      else word += character
    } else if (character === '"' || character === "'") {
      quote = character
      is_word = true
    } else if (character === "\\") {
      at += 1
      word += line[at] ?? ""
      is_word = true
    } else if (/\s/.test(character)) {
      if (is_word) words.push(word)
      word = ""
      is_word = false
    } else {
      word += character
      is_word = true
    }
  }
  const typed_before = [...word.matchAll(BREAKS)].at(-1)?.index ?? -1
  return { words: [...words, word], typed_before: typed_before + 1 }
}
