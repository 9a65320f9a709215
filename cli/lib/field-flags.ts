import { type Command, Option } from "commander"
import type { OperationField } from "../../src/client/operation"
import type { Context } from "./context"
import { FieldOption, ONLY_EVENT, PERIOD, SINCE, SLUG, UNTIL } from "./flags"
import { onOff, wholeNumber } from "./input"
import { several } from "./run"
import { moment, momentAhead, month } from "./time"

/** Options of a plain command, as commander reads them. */
export type PlainOptions = Readonly<Record<string, string | string[] | boolean | undefined>>

/** A flag as its help shows it; `several` times, `required`, or `hidden` from help. */
export type OptionWords = readonly [flags: string, about: string, kind?: OptionKind]
type OptionKind = "several" | "required" | "hidden"

/** Flags for one field whose schema says too little. `read` gives its value, or undefined for none. */
export interface FieldFlags {
  options: readonly OptionWords[]
  read: (options: PlainOptions, context: Context) => unknown
}

/** One flag for a field. `read` makes the value of what was typed; default: the text itself. */
export function flag<Typed = string>(
  words: OptionWords,
  read: (typed: Typed, option: string, context: Context) => unknown = (typed) => typed,
): FieldFlags {
  const [option = ""] = words[0].split(" ")
  const name = camel(option.slice(2))
  return {
    options: [words],
    read(options, context) {
      const typed = options[name]
      return typed === undefined ? undefined : read(typed as never, option, context)
    },
  }
}

/** `max-attempts` as commander calls its value. */
export const camel = (name: string): string =>
  name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Adds a flag; `field` is what it fills in a request, so that errors name the flag. */
export function addOption(command: Command, [flags, about, kind]: OptionWords, field?: string) {
  const option =
    field === undefined ? new Option(flags, about) : new FieldOption(flags, about, field)
  if (kind === "several") option.argParser(several)
  command.addOption(option.makeOptionMandatory(kind === "required").hideHelp(kind === "hidden"))
}

/**
 * The flag for one field of a request, as the schema of the field describes it. `about` is its help
 * where the schema says too little; a filter narrows a list.
 */
export function fieldOption(
  field: string,
  spec: OperationField,
  { name, about, is_filter }: { name: string; about: string | undefined; is_filter: boolean },
): FieldOption {
  const text = about ?? helpOf(name, spec, is_filter)
  const option = new FieldOption(`--${name} ${placeholderOf(name, spec)}`, text, field)
  if (spec.type === "array") option.argParser(several)
  return option.makeOptionMandatory(spec.required === true)
}

function placeholderOf(name: string, { type, enum: words, nullable }: OperationField): string {
  const known = Object.entries(PLACEHOLDERS).find(([, names]) => names.includes(name))
  if (known) return known[0]
  if (type === "boolean") return "<on|off>"
  if (type === "integer" || type === "number") return "<number>"
  return words || type === "array" || nullable ? `<${name.split("-").at(-1)}>` : "<text>"
}

/** Where the type of a field says less than the flag itself. */
const PLACEHOLDERS: Readonly<Record<string, readonly string[]>> = {
  "<YYYY-MM>": ["period"],
  "<address>": ["email", "from", "ip", "to"],
  "<category>": ["category"],
  "<format>": ["signature"],
  "<hours>": ["overlap"],
  "<id>": [
    ...[
      "actor",
      "application",
      "batch",
      "device-id",
      "event-id",
      "external-id",
      "key",
      "request-id",
      "subscriber-id",
    ],
    ...["team-id", "thread", "user", "user-id"],
  ],
  "<label>": ["return-path", "tracking"],
  "<language>": ["locale"],
  "<name>": ["action", "name"],
  "<role>": ["role"],
  "<url>": ["redirect-url"],
  "<subscriber>": ["subscriber"],
  "<template>": ["template"],
  "<text>": ["description", "subject"],
  "<type>": ["event", "target"],
  "<when>": ["expires", "since", "until"],
  "<zone>": ["timezone"],
  ...{ "<domain>": ["domain"], "<path>": ["path"], "<selector>": ["selector"] },
  ...{ "<slug>": ["slug"], "<status>": ["status"], "<tag>": ["tag"] },
  ...{ "<phone>": ["phone", "phone-number"], "<provider>": ["provider"], "<topic>": ["topic"] },
}

/** One idea has one wording in every command. */
const SHARED_HELP: Partial<Record<string, string>> = {
  event: ONLY_EVENT,
  period: PERIOD[1],
  since: SINCE[1],
  slug: SLUG[1],
  until: UNTIL[1],
}

/** The words of the API's description, as a help text says them. */
function helpOf(name: string, spec: OperationField, is_filter: boolean): string {
  if (SHARED_HELP[name]) return SHARED_HELP[name]
  const words = spec.enum?.map(String)
  const label = name.replaceAll("-", " ")
  const choice =
    words && (words.length > 1 ? `${words.slice(0, -1).join(", ")} or ${words.at(-1)}` : words[0])
  const sentence = spec.description?.split(/\.(?: |$)/)[0]?.replaceAll("`", "") ?? label
  const plain = uncapitalized(sentence).replace(/^only /, "show only ")
  const text = choice ? `${is_filter ? `show only this ${label}` : label}: ${choice}` : plain
  const usual = spec.default === undefined ? "" : ` (default: ${spec.default})`
  return `${text}${usual}${spec.type === "array" ? "; may be repeated" : ""}`
}

/** As a help text begins. */
export const uncapitalized = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

/** What empties a field. */
const NONE = "none"

/** What a text means, by the field that it is for. */
const READERS: Partial<Record<string, (text: string, option: string) => unknown>> = {
  created_after: moment,
  created_before: moment,
  expires_at: momentAhead,
  period: month,
  since: moment,
  until: moment,
}

/**
 * The value of a field, as a person typed it behind its flag. `none` and `never` are null where null
 * is accepted, unless `about`, the help of the flag, does not name the word. Of a list `none` is an empty
 * one where the help names it.
 */
export function fieldValue(
  field: string,
  spec: OperationField,
  given: string | string[],
  { option, about }: { option: string; about?: string | undefined },
): unknown {
  if (Array.isArray(given)) {
    const items = given.flatMap((some) => some.split(","))
    return items.join() === NONE && about?.includes(NONE) ? [] : items
  }
  const is_null = [NONE, "never"].includes(given) && (about ?? given).includes(given)
  if (spec.nullable && is_null) return null
  const read = READERS[field]
  if (read) return read(given, option)
  if (spec.type === "boolean") return onOff(given, option)
  const is_number = spec.type === "integer" || spec.type === "number"
  return is_number ? wholeNumber(given, option) : given
}
