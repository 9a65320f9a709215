import type { Command } from "commander"
import { type AnswerOf, addressOf, type OperationName, paramsOf } from "../../src/client/client"
import type { OperationField, OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import { type Client, requireParams } from "./client"
import type { Action, Context } from "./context"
import { type Exit, exits, usage } from "./errors"
import { fieldOption, fieldValue, uncapitalized } from "./field-flags"
import { flagOf, IDEMPOTENCY_KEY, LIMIT, optionWords, quoted } from "./flags"
import { limitOf, listUpTo, type RowOf } from "./paging"
import { confirm } from "./prompts"
import { examples, run } from "./run"
import { type Columns, fields } from "./table"
import type { Paint } from "./terminal"

/** What an operation answers: a record, or a list of them. */
type DataOf<Name extends OperationName> = AnswerOf<Name> extends { data: infer Data } ? Data : never

/** Options of a plain command, as commander reads them. */
export type PlainOptions = Readonly<Record<string, string | string[] | boolean | undefined>>

/** Help of flags by the field that they fill; a field with `false` has no flag. */
export type PlainFlags = Readonly<Record<string, string | false>>

/** The body as it was sent. */
type SentBody = Readonly<Record<string, unknown>>

/** A question before a change. What it answers goes into the body. */
type Confirmation = (
  context: Context,
  words: readonly string[],
  client: Client,
  options: PlainOptions,
) => Promise<object | undefined>

/** Asks a person to type `word` before the change. */
export const asks =
  (question: (...words: string[]) => string, word: string): Confirmation =>
  async (context, words) => {
    await confirm(context, question(...words), word)
    return undefined
  }

/** What a plain command has besides its route; all of it may be left out. */
interface PlainParts<Name extends OperationName> {
  /** What it does, in one line; default: the summary of the operation. */
  about?: string
  /** What stands behind the command and its arguments in the example of its help. */
  example?: string | readonly string[]
  /** What stands for its first argument in the example. */
  word?: string
  /** More for its help. */
  note?: string
  flags?: PlainFlags
  /** Flags whose name is not that of their field. */
  aliases?: Readonly<Record<string, string>>
  /** More flags, which `body` reads. */
  options?: (command: Command) => Command
  /** Fields of the body that are more than the value of a flag. */
  body?: (
    options: PlainOptions,
    words: readonly string[],
    context: Context,
  ) => object | Promise<object>
  /** Why these options cannot be: exit 2. */
  refuse?: (options: PlainOptions) => string | undefined
  confirm?: Confirmation
  /** Parameters of the path that no argument gives. */
  params?: Readonly<Record<string, string>>
  /** The first argument names the account to work in. */
  of_account?: true
  /** No credential is needed, and none is sent. */
  anonymous?: true
  /** The id of what the first argument names. */
  id?: (client: Client, name: string) => Promise<string>
  /** Of a list. */
  columns?:
    | Columns<RowOf<Name>>
    | ((context: Context, options: PlainOptions) => Columns<RowOf<Name>>)
  /** A record for people. Default: all of its fields. */
  shown?: (data: DataOf<Name>, paint: Paint, width: number) => string
  /** What was done, as one line for people. */
  done?: (data: DataOf<Name>, words: readonly string[], body: SentBody) => string
  /** What `--quiet` prints; default: the id. */
  brief?: (data: DataOf<Name>) => string | null | undefined
  /** The exit code; default 0. */
  exit?: (data: DataOf<Name>) => Exit
  /** The command to type next, without `belfry`; of a list, where it has no further page. */
  next?: (data: DataOf<Name>, words: readonly string[], options: PlainOptions) => string | undefined
  /** After the result was printed. */
  after?: (context: Context, answer: AnswerOf<Name>) => Promise<void>
}

/** One row of the table of resources. */
interface PlainCommand {
  /** With its arguments: `get <id>`. */
  use: string
  route: OperationName
  parts: PlainParts<OperationName>
}

export interface Resource {
  /** `projects`, `me sessions`; "" for a command of the root. */
  noun: string
  about: string
  /** Of the help of the noun; default: that of its first row. */
  example?: string | readonly string[]
  rows: readonly PlainCommand[]
}

/** One row: its types are those of its route. */
export const row = <Name extends OperationName>(
  use: string,
  route: Name,
  parts: PlainParts<Name> = {},
): PlainCommand => ({ use, route, parts: parts as unknown as PlainParts<OperationName> })

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
    for (const one of rows) addPlainCommand(group, noun, one)
    const lines = example
      ? [example].flat()
      : rows.slice(0, 1).flatMap((one) => exampleLines(noun, one))
    if (noun !== "") group.addHelpText("after", examples(...lines))
  }
}

/** The group of commands with this name, which another file may have begun. */
export function groupOf(parent: Command, name: string, about = ""): Command {
  if (name === "") return parent
  const known = parent.commands.find((command) => command.name() === name)
  return known ?? parent.command(name).description(about)
}

function addPlainCommand(group: Command, noun: string, one: PlainCommand): void {
  const { use, route, parts } = one
  const { paged, idempotent, many, summary, query = {} }: OperationRow = operations[route]
  const command = group.command(use).description(parts.about ?? uncapitalized(summary))
  const filled = bodyArguments(one)
  for (const [field, spec] of flagFields(one)) {
    if (filled.has(field)) continue
    const name = nameOf(field, parts)
    const about = parts.flags?.[field] || undefined
    command.addOption(fieldOption(field, spec, { name, about, is_filter: field in query }))
  }
  parts.options?.(command)
  if (idempotent) command.option(...IDEMPOTENCY_KEY)
  if (paged && many) command.option(...LIMIT)
  const note = parts.note ? `\n${parts.note}\n` : ""
  command.addHelpText("after", note + examples(...exampleLines(noun, one)))
  command.action(run(actionOf(noun, one)))
}

/** `keys update ID --name ci`, as often as the row has an example. */
export function exampleLines(noun: string, { use, parts }: PlainCommand): string[] {
  let { word } = parts // of the first argument alone
  const words = use.replaceAll(/[<[](\w+)[>\]]/g, (_, name: string) => {
    const given = word
    word = undefined
    return given ?? EXAMPLE_WORDS[name] ?? ID
  })
  const begin = `${noun} ${words}`.trimStart()
  return [parts.example ?? ""].flat().map((end) => `${begin} ${end}`.trimEnd())
}

export const ID = "0199a1c2-0000-7000-8000-000000000001"

/** What stands for an argument in an example. */
const EXAMPLE_WORDS: Partial<Record<string, string>> = {
  channel: "email",
  code: "123456",
  domain: "acme.test",
  email: "kim@example.test",
  from: "user-17",
  queue: "email",
  role: "admin",
  template: "receipt",
  time: "'tomorrow 9:00'",
  to: "ann@example.test",
  token: "belfry_invitation_…",
  url: "https://example.com/hooks",
  version: "1",
  user: "0199a1c2-0000-7000-8000-000000000002",
}

/** Fields of query and body that may have a flag. */
function flagFields({ route, parts: { flags = {} } }: PlainCommand): [string, OperationField][] {
  const { query = {}, body = {} }: OperationRow = operations[route]
  return Object.entries({ ...query, ...body }).filter(
    ([field, { type, description }]) =>
      flags[field] !== false &&
      (type !== "object" || flags[field]) &&
      !description?.startsWith("Another name of"),
  )
}

/** Fields of the body that arguments fill: those behind the parameters of the path. */
function bodyArguments({ use, route, parts }: PlainCommand): Map<string, number> {
  const names = [...use.matchAll(/[<[](\w+)/g)].map(([, name = ""]) => name)
  const { body = {} }: OperationRow = operations[route]
  const first = parts.of_account ? 1 : openParams(route, parts).length
  const filled = names.slice(first).flatMap((name, at) => {
    const field = [name, `${name}_id`, `user_${name}`].find((one) => one in body)
    return field === undefined ? [] : [[field, first + at] as const]
  })
  return new Map(filled)
}

/** Parameters of the path that arguments give, in their order. */
const openParams = (route: OperationName, { params = {} }: PlainParts<OperationName>): string[] =>
  paramsOf(route).filter((name) => !(name in params))

const nameOf = (field: string, { aliases = {} }: PlainParts<OperationName>) =>
  aliases[field] ?? flagOf(field)

const camel = (name: string) =>
  name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Query and body, as flags and arguments say them. */
async function inputOf(
  one: PlainCommand,
  options: PlainOptions,
  words: readonly string[],
  context: Context,
) {
  const { query = {}, body }: OperationRow = operations[one.route]
  const all = new Map<string, unknown>()
  for (const [field, spec] of flagFields(one)) {
    const name = nameOf(field, one.parts)
    const given = options[camel(name)]
    if (typeof given === "string" || Array.isArray(given)) {
      const about = one.parts.flags?.[field] || undefined
      all.set(field, fieldValue(field, spec, given, { option: `--${name}`, about }))
    }
  }
  for (const [field, at] of bodyArguments(one)) {
    if (words[at] !== undefined) all.set(field, words[at])
  }
  const own = [...all].filter(([field]) => !(field in query))
  const more = await one.parts.body?.(options, words, context)
  return {
    query: Object.fromEntries([...all].filter(([field]) => field in query)),
    body: body && { ...Object.fromEntries(own), ...more },
  }
}

function actionOf(noun: string, one: PlainCommand): Action<PlainOptions> {
  const { route, parts, use } = one
  const { fields: known, many, paged }: OperationRow = operations[route]
  const { method } = addressOf(route)
  return async (context, options, ...words) => {
    const wrong = parts.refuse?.(options)
    if (wrong !== undefined) throw usage(wrong)
    if (known) context.output.promises(known.split(" "))
    const { query, body } = await inputOf(one, options, words, context)
    if (method === "PATCH" && Object.keys(body ?? {}).length === 0) {
      throw usage("nothing to change: give at least one flag", "see --help")
    }
    const client = clientOf(context, one, words)
    const params = await paramsFrom(one, client, words)
    requireParams(params)
    const asked = await parts.confirm?.(context, words, client, options)
    const key = options.idempotencyKey
    const sent = body && { ...body, ...asked }
    const input = {
      params,
      query,
      ...(sent && { body: sent }),
      ...(typeof key === "string" && { headers: { "idempotency-key": key } }),
    }
    if (!many) return await record(context, one, words, sent ?? {}, await client.send(route, input))
    const limit = typeof options.limit === "string" ? options.limit : undefined
    const found = paged
      ? await listUpTo(client, route, limitOf(limit), input)
      : { rows: ((await client.send(route, input)) as ListAnswer).data, more: false, warnings: [] }
    const columns =
      typeof parts.columns === "function" ? parts.columns(context, options) : parts.columns
    await context.output.list(found.rows as ListAnswer["data"], (columns ?? {}) as Columns<object>)
    await parts.after?.(context, { data: found.rows, warnings: found.warnings } as never)
    if (!found.more) return await next(context, parts.next?.(found.rows as never, words, options))
    const begin = [noun, use.split(" ")[0], ...words.map(quoted)].filter(Boolean).join(" ")
    const again = { ...options, limit: String(2 * limitOf(limit)) } as Record<string, string>
    return await next(context, `${begin}${optionWords(again)}`)
  }
}

interface ListAnswer {
  data: Record<string, unknown>[]
}

async function next({ output }: Context, command: string | undefined): Promise<undefined> {
  if (command !== undefined) await output.next(`belfry ${command}`)
}

function clientOf(context: Context, { parts }: PlainCommand, [account_id]: readonly string[]) {
  if (parts.anonymous) return context.anonymous()
  if (!parts.of_account || !account_id) return context.client()
  return context.client(undefined, { account_id, project_id: null })
}

async function paramsFrom(
  { route, parts }: PlainCommand,
  client: Client,
  words: readonly string[],
) {
  const names = openParams(route, parts)
  const values = words.slice(0, names.length)
  if (parts.id && values[0] !== undefined) values[0] = await parts.id(client, values[0])
  return {
    ...parts.params,
    ...Object.fromEntries(names.map((name, at) => [name, values[at] ?? ""])),
  }
}

async function record(
  context: Context,
  { parts }: PlainCommand,
  words: readonly string[],
  sent: SentBody,
  answer: unknown,
): Promise<Exit> {
  const { output, paint, terminal } = context
  const { data } = answer as { data: never }
  const { done, shown = allFields } = parts
  const text = () => shown(data, paint, terminal.width)
  const human = () => {
    if (!done) return text()
    const line = `${paint.green("✓")} ${done(data, words, sent)}`
    return parts.shown ? `${line}\n${text()}` : line
  }
  await output.record(data, human, parts.brief?.(data))
  await parts.after?.(context, answer as never)
  await next(context, parts.next?.(data, words, {}))
  return parts.exit?.(data) ?? exits.done
}

const allFields = (data: object, paint: Paint) => fields(Object.entries(data), paint)
