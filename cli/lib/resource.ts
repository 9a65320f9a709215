import type { Command } from "commander"
import { type AnswerOf, type OperationName, paramsOf } from "../../src/client/client"
import type { OperationField, OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import type { Client } from "./client"
import type { Action, Context } from "./context"
import type { Exit } from "./errors"
import type { FieldFlags, OptionWords, PlainOptions } from "./field-flags"
import type { RowOf } from "./paging"
import { confirm } from "./prompts"
import type { Columns } from "./table"
import type { Paint } from "./terminal"

/** What an operation answers: a record, or a list of them. */
export type DataOf<Name extends OperationName> =
  AnswerOf<Name> extends { data: infer Data } ? Data : never

/** What help says of the flags of a field, or own flags for it. A field with `false` has no flag. */
export type PlainFlags = Readonly<Record<string, string | false | FieldFlags>>

/** The body as it was sent. */
export type SentBody = Readonly<Record<string, unknown>>

/** A question before a change. An object that it answers goes into the body. */
type Confirmation = (
  context: Context,
  words: readonly string[],
  client: Client,
  options: PlainOptions,
) => Promise<unknown>

/** Finds a parameter of the path by the arguments. */
type ParamLookup = (client: Client, words: readonly string[]) => Promise<string>

/** Asks a person to type `word` before the change. */
export const asks =
  (question: (...words: string[]) => string, word: string): Confirmation =>
  (context, words) =>
    confirm(context, question(...words), word)

/** Of a command that deletes what its first argument names, once a person has said so. */
export const deletes = (question: (...words: string[]) => string) => ({
  example: "--yes",
  confirm: asks(question, "delete"),
  done: (_: unknown, [named]: readonly string[]) => `deleted ${named}`,
})

/** What every command may have beside its name and its action. */
interface CommandParts {
  /** What it does, in one line; default: the summary of the operation. */
  about?: string
  /** What stands behind the command and its arguments in the example of its help. */
  example?: string | readonly string[]
  /** What stands for its first argument in the example; of several in the order of the examples. */
  word?: string | readonly string[]
  /** What its argument is. */
  argument?: string
  /** More for its help, before the examples. */
  note?: string
  /** The same behind them. */
  end?: string
  /** Flags that fill no field by themselves. */
  options?: readonly OptionWords[]
}

/** What a plain command has besides its route; all of it may be left out. */
interface PlainParts<Name extends OperationName> extends CommandParts {
  /** By field. A name with dots is a field inside of an object. */
  flags?: PlainFlags
  /** Flags whose name is not that of their field. */
  aliases?: Readonly<Record<string, string>>
  /** `--file` gives a whole body. Its fields replace these, and those of the other flags replace them. */
  file?: object
  /** Fields of the query or the body that are more than the value of a flag. */
  input?: (
    options: PlainOptions,
    words: readonly string[],
    context: Context,
  ) => object | Promise<object>
  /** Why these options cannot be: exit 2. */
  refuse?: (options: PlainOptions, words: readonly string[], context: Context) => string | undefined
  confirm?: Confirmation
  /** Parameters of the path that no argument gives: their values, or what finds them. */
  params?: Readonly<Record<string, string | ParamLookup>>
  /** The first argument names the account to work in. */
  of_account?: true
  /** No credential is needed, and none is sent. */
  anonymous?: true
  /** Of a call that may take long, in milliseconds; `--timeout` replaces it. */
  time_limit?: number
  /** The answer is asked for as a stream of events, which is shown as it comes. */
  streams?: true
  /** Shows what the details of its refusal carry. */
  refused?: (context: Context, details: object) => Promise<void>
  /** The id of what the first argument names. */
  id?: (client: Client, name: string) => Promise<string>
  /** What does it where these options or arguments are given: another row, or an action. */
  instead?: (
    options: PlainOptions,
    words: readonly string[],
  ) => PlainRow | Action<PlainOptions> | false
  /** Of a list. */
  columns?:
    | Columns<RowOf<Name>>
    | ((context: Context, options: PlainOptions) => Columns<RowOf<Name>>)
  /** Prints the answer in a way of its own, and may give the exit code; undefined where it is printed like any other. */
  print?: (
    context: Context,
    answer: AnswerOf<Name>,
    options: PlainOptions,
    words: readonly string[],
  ) => Promise<unknown> | undefined
  /** Values that people see in the place of those of the record; null for none. */
  values?: (data: DataOf<Name>) => object
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
  after?: (context: Context, answer: AnswerOf<Name>, options: PlainOptions) => Promise<void>
}

/** One row of the table of resources. */
export interface CommandRow {
  /** With its arguments: `get <id>`; "" for what the noun does by itself. */
  use: string
  /** Of a plain command. */
  route?: OperationName
  /** Of any other. */
  action?: Action<never>
  parts: PlainParts<OperationName>
}

export type PlainRow = CommandRow & { route: OperationName }

export interface Resource {
  /** `projects`, `me sessions`; "" for a command of the root. */
  noun: string
  /** A shorter word for it. */
  alias?: string
  about: string
  /** Of the help of the noun; default: that of its first row. */
  example?: string | readonly string[]
  rows: readonly CommandRow[]
}

/** A plain command: its types are those of its route. */
export const row = <Name extends OperationName>(
  use: string,
  route: Name,
  parts: PlainParts<Name> = {},
): PlainRow => ({ use, route, parts: parts as unknown as PlainParts<OperationName> })

/** A command that does more than its route, or asks several. */
export const own = <Options>(
  use: string,
  action: Action<Options>,
  parts: CommandParts & { about: string },
): CommandRow => ({ use, action, parts })

/** The group of commands with this name, which another file may have begun. */
export function groupOf(parent: Command, name: string, about = ""): Command {
  if (name === "") return parent
  const known = parent.commands.find((command) => command.name() === name)
  return known ?? parent.command(name).description(about)
}

/** The help of a field, where a row has one. */
export const aboutOf = (field: string, flags: PlainFlags = {}) => {
  const about = flags[field]
  return typeof about === "string" ? about : undefined
}

export const ownFlags = (flags: PlainFlags = {}): [string, FieldFlags][] =>
  Object.entries(flags).flatMap(([field, given]) =>
    typeof given === "object" ? [[field, given] as const] : [],
  ) as [string, FieldFlags][]

/** `keys update ID --name ci`, as often as the row has an example. */
export function exampleLines(noun: string, { use, parts }: CommandRow): string[] {
  const firsts = [parts.word ?? []].flat()
  return [parts.example ?? ""].flat().map((end, at) => {
    let word = firsts[at] ?? firsts[0] // of the first argument alone
    const words = use.replaceAll(/ [<[]([\w=]+)(?:\.\.\.)?[>\]]/g, (all, name: string) => {
      const given = word
      word = undefined
      if (given === undefined && all.endsWith("]")) return ""
      return ` ${given ?? EXAMPLE_WORDS[name] ?? ID}`
    })
    return `${`${noun} ${words}`.trim()} ${end}`.trimEnd()
  })
}

export const ID = "0199a1c2-0000-7000-8000-000000000001"
export const OTHER_ID = "0199a1c2-0000-7000-8000-000000000002"

/** What stands for an argument in an example. */
const EXAMPLE_WORDS: Partial<Record<string, string>> = {
  account: "acme",
  channel: "email",
  code: "123456",
  domain: "acme.test",
  email: "kim@example.test",
  environment: "live",
  event: "opened",
  from: "user-17",
  key: OTHER_ID,
  "name=value": "hide_account_existence=true",
  plan: "pro",
  platform: "game-center",
  provider: "google",
  queue: "email",
  role: "admin",
  subscriber: "user-42",
  template: "receipt",
  time: "'tomorrow 9:00'",
  to: "ann@example.test",
  token: "belfry_invitation_…",
  topic: "product-news",
  url: "https://example.com/hooks",
  version: "1",
  user: OTHER_ID,
}

/** Fields of query and body that have a flag as their schema says. */
export function flagFields({ route, parts: { flags = {} } }: PlainRow): [string, OperationField][] {
  const { query = {}, body = {} }: OperationRow = operations[route]
  return Object.entries({ ...query, ...body }).filter(
    ([field, { type, description }]) =>
      (typeof flags[field] === "string" || (flags[field] === undefined && type !== "object")) &&
      !description?.startsWith("Another name of"),
  )
}

/** Fields of the body that arguments fill: those behind the parameters of the path. */
export function bodyArguments({ use, route, parts }: PlainRow): Map<string, number> {
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
export const openParams = (
  route: OperationName,
  { params = {} }: PlainParts<OperationName>,
): string[] => paramsOf(route).filter((name) => !(name in params))
