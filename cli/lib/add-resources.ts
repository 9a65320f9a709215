import type { Command } from "commander"
import { addressOf } from "../../src/client/client"
import type { OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import { readsFrames, streamedAnswer } from "./authoring-stream"
import { type Client, requireParams } from "./client"
import type { Action, Context } from "./context"
import { exits, Failure, usage } from "./errors"
import {
  addOption,
  camel,
  fieldOption,
  fieldValue,
  type OptionWords,
  type PlainOptions,
  uncapitalized,
} from "./field-flags"
import { flagOf, IDEMPOTENCY_KEY, LIMIT, optionWords, quoted } from "./flags"
import { isObject, objectIn, placed } from "./input"
import { limitOf, listUpTo } from "./paging"
import {
  aboutOf,
  bodyArguments,
  type CommandRow,
  exampleLines,
  flagFields,
  groupOf,
  openParams,
  ownFlags,
  type PlainRow,
  type Resource,
  type SentBody,
} from "./resource"
import { run } from "./run"
import { type Columns, recordText } from "./table"
import { cleanText } from "./terminal"

/**
 * Adds every row as a command: flags, help and behaviour come from the schemas of its route. A noun
 * that is not needed gets no commands.
 */
export function addResources(
  program: Command,
  resources: readonly Resource[],
  isNeeded: (name: string) => boolean,
): void {
  for (const { noun, alias, about, rows, example } of resources) {
    const names = noun.split(" ")
    const group = names.reduce((parent, name) => groupOf(parent, name, about), program)
    if (alias) group.alias(alias)
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
  const [argument] = command.registeredArguments
  if (argument && parts.argument) argument.description = parts.argument
  const note = parts.note ? `\n${parts.note}\n` : ""
  const end = parts.end ? `\n\n${parts.end}` : ""
  const text = note + examples(...exampleLines(noun, one)) + end
  command.description(about).addHelpText("after", text)
}

const examples = (...lines: string[]): string =>
  `\nExample:\n${lines.map((line) => `  $ belfry ${line}`).join("\n")}`

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

/** What a plain command does: one request, whose answer it prints. */
export function actionOf(noun: string, one: PlainRow): Action<PlainOptions> {
  const { route, parts, use } = one
  const { fields: known, many, paged }: OperationRow = operations[route]
  const { method } = addressOf(route)
  return async (context, options, ...words) => {
    const other = parts.instead?.(options, words)
    if (other) {
      const action = typeof other === "function" ? other : actionOf(noun, other)
      return await action(context, options, ...words)
    }
    const wrong = parts.refuse?.(options, words, context)
    if (wrong !== undefined) throw usage(wrong)
    if (known) context.output.promises(known.split(" "))
    const { query, body } = await inputOf(one, options, words, context)
    if (method === "PATCH" && Object.keys(body ?? {}).length === 0) {
      throw usage("nothing to change: give at least one flag", "see --help")
    }
    const client = clientOf(context, one, options, words)
    const params = await paramsFrom(one, client, words)
    requireParams(params)
    const asked = await parts.confirm?.(context, words, client, options)
    const key = options.idempotencyKey
    const sent = body && { ...body, ...(isObject(asked) && asked) }
    const input = {
      params,
      query,
      ...(sent && { body: sent }),
      ...(typeof key === "string" && { headers: { "idempotency-key": key } }),
    }
    if (!many) {
      const answer = parts.streams
        ? await watched(context, one, client.stream(route, input))
        : await client.send(route, input)
      return await shownAnswer(context, one, { options, words, sent: sent ?? {}, answer })
    }
    const limit = typeof options.limit === "string" ? options.limit : undefined
    const found = paged
      ? await listUpTo(client, route, limitOf(limit), input)
      : { rows: ((await client.send(route, input)) as ListAnswer).data, more: false, warnings: [] }
    const columns =
      typeof parts.columns === "function" ? parts.columns(context, options) : parts.columns
    await context.output.list(found.rows as ListAnswer["data"], (columns ?? {}) as Columns<object>)
    await parts.after?.(context, { data: found.rows, warnings: found.warnings } as never, options)
    if (!found.more) return await next(context, parts.next?.(found.rows as never, words, options))
    const begin = [noun, use.split(" ")[0], ...words.map(quoted)].filter(Boolean).join(" ")
    const again = { ...options, limit: String(2 * limitOf(limit)) } as Record<string, string>
    return await next(context, `${begin}${optionWords(again)}`)
  }
}

/** Query and body, as flags and arguments say them. */
async function inputOf(
  one: PlainRow,
  options: PlainOptions,
  words: readonly string[],
  context: Context,
) {
  const { query = {}, body }: OperationRow = operations[one.route]
  const { flags, aliases, file, input } = one.parts
  let all: Record<string, unknown> = {}
  for (const [field, spec] of flagFields(one)) {
    const name = aliases?.[field] ?? flagOf(field)
    const given = options[camel(name)]
    const about = aboutOf(field, flags)
    if (typeof given === "string" || Array.isArray(given))
      all[field] = fieldValue(field, spec, given, { option: `--${name}`, about })
  }
  for (const [field, { read }] of ownFlags(flags)) {
    const value = await read(options, context)
    if (value !== undefined) all = placed(all, field.split("."), value)
  }
  for (const [field, at] of bodyArguments(one)) {
    if (words[at] !== undefined) all[field] = words[at]
  }
  Object.assign(all, await input?.(options, words, context))
  const of = (wanted: boolean) =>
    Object.fromEntries(Object.entries(all).filter(([field]) => field in query === wanted))
  const whole = file && { ...file, ...(await objectIn(options.file, "--file")) }
  return { query: of(true), body: body && (whole ? replaced(whole, of(false)) : of(false)) }
}

/** Flags that add to what a file has. */
const ADDED = ["metadata", "headers", "attachments"]

/** The fields of a file with those of flags in their place. */
function replaced(file: Record<string, unknown>, fields: Record<string, unknown>) {
  const all = { ...file, ...fields }
  for (const field of ADDED) {
    const [before, more] = [file[field], fields[field]]
    if (Array.isArray(before) && Array.isArray(more)) all[field] = [...before, ...more]
    else if (isObject(before) && isObject(more)) all[field] = { ...before, ...more }
  }
  return all
}

interface ListAnswer {
  data: Record<string, unknown>[]
}

async function next({ output }: Context, command: string | undefined): Promise<undefined> {
  if (command !== undefined) await output.next(`belfry ${command}`)
}

/** With --wait, --timeout is the time to wait; the call itself has this limit (ms). */
const CALL_LIMIT = 30_000

function clientOf(
  context: Context,
  { parts: { anonymous, of_account, time_limit } }: PlainRow,
  { wait }: PlainOptions,
  [account_id]: readonly string[],
) {
  if (anonymous) return context.anonymous()
  const choice = of_account && account_id ? { account_id, project_id: null } : undefined
  return context.client(wait === true ? CALL_LIMIT : (context.timeout ?? time_limit), choice)
}

/** The answer as a whole, once its stream has been shown. */
async function watched(context: Context, { parts }: PlainRow, asked: ReturnType<Client["stream"]>) {
  try {
    return { data: await streamedAnswer(context, await asked) }
  } catch (error) {
    if (error instanceof Failure) await parts.refused?.(context, error.details)
    throw error
  }
}

async function paramsFrom({ route, parts }: PlainRow, client: Client, words: readonly string[]) {
  const names = openParams(route, parts)
  const values = words.slice(0, names.length)
  if (parts.id && values[0] !== undefined) values[0] = await parts.id(client, values[0])
  const others = Object.entries(parts.params ?? {}).map(async ([name, value]) => [
    name,
    typeof value === "string" ? value : await value(client, words),
  ])
  return {
    ...Object.fromEntries(await Promise.all(others)),
    ...Object.fromEntries(names.map((name, at) => [name, values[at] ?? ""])),
  }
}

interface Answered {
  options: PlainOptions
  words: readonly string[]
  sent: SentBody
  answer: unknown
}

async function shownAnswer(
  context: Context,
  { route, parts }: PlainRow,
  { options, words, sent, answer }: Answered,
): Promise<number | undefined> {
  const { output, paint, terminal } = context
  const printed = parts.print?.(context, answer as never, options, words)
  if (printed) return (await printed) as number | undefined
  if (operations[route as "GET /v1/emails/{email_id}/raw"].produces) {
    return await printRaw(context, answer as Uint8Array)
  }
  const { data } = answer as { data: never }
  const { done, values, shown = (_: never) => recordText(data, paint, values?.(data)) } = parts
  const human = () => {
    if (!done) return shown(data, paint, terminal.width)
    const line = `${paint.green("✓")} ${done(data, words, sent)}`
    return parts.shown ? `${line}\n${shown(data, paint, terminal.width)}` : line
  }
  const is_told = parts.streams && readsFrames(context)
  if (!is_told) await output.record(data, human, parts.brief?.(data))
  await parts.after?.(context, answer as never, options)
  await next(context, parts.next?.(data, words, options))
  return parts.exit?.(data) ?? exits.done
}

/** The bytes of a mail as they are; on a terminal without what could move the cursor. */
async function printRaw({ output, terminal }: Context, bytes: Uint8Array): Promise<undefined> {
  await output.raw(terminal.out ? cleanText(new TextDecoder().decode(bytes)) : bytes)
}
