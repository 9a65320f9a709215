import type { Static, TObject, TSchema } from "@sinclair/typebox"
import type { ApiError, ErrorCode, Problems } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { Claim } from "./idempotency"
import type { Upgrade } from "./sockets"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

export type CallerKind = "key" | "console" | "app" | "user" | "subscriber" | "none"

/** `data` under its envelope. */
export interface Enveloped<Data = unknown> {
  data: Data
  status?: number
  /** Stands beside `data`. */
  top?: object
  /** Stands in `meta` beside the usual. */
  meta?: object
  headers?: Record<string, string>
}

/** An answer in JSON without the envelope. */
export interface Bare<Body = unknown> {
  bare: Body
  status?: number
}

/** What a handler returns: what goes under the envelope, a finished response, or a connection. */
export type RouteAnswer = Enveloped | Bare | Response | Upgrade

/** The parameters of a path by name. With `choices`, a parameter is one of their words. */
export type PathParams<Path extends string, Choices = object> = {
  [Name in ParamName<Path>]: Name extends keyof Choices
    ? Choices[Name] extends readonly (infer Word)[]
      ? Word
      : string
    : string
}

type ParamName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamName<Rest>
  : never

/**
 * One row of the service's interface. Nothing answers without such a row. A row does not compile
 * without its callers and its scope, or with a handler whose answer is not what the schemas say.
 */
interface Route<
  Path = string,
  Choices = AnyChoices,
  Body = TSchema,
  Read = unknown,
  Query = TObject,
  Data = TSchema,
  Top = TObject,
  Meta = TObject,
  Whole = TSchema,
  Produces = string,
  Also = readonly string[],
> {
  method: Method
  /** Parameters of the path and query that are credentials: logs and errors never show them. */
  credentials?: readonly string[]
  callers: CallerKind[]
  /** A scope, several joined by `|`, `role:…`, or `-`: the credential alone is enough. */
  scope: string
  /** What a person in the console needs in its place. */
  console_scope?: "role:project_admin"
  /** Of a success, as the contract lists them; the first is the default. */
  status: [number, ...number[]]
  /** Beside them, of answers in the same form that tell of trouble. */
  also?: readonly number[]
  summary: string
  /** A few sentences more, for the reference. */
  description?: string
  /** A body that is taken, for the reference. */
  example?: unknown
  /** As every PATCH, though it is none: a body that names no known field is refused. */
  changes?: true
  /** Request headers that only this route reads, for the reference. */
  headers?: TObject
  /** What it may refuse beside what any route does; with a status where it is not the usual one. */
  errors?: readonly (ErrorCode | readonly [ErrorCode, number])[]
  /** A page for people, no part of the API: its body is a form, and this shows its refusals. */
  page?: (error: ApiError) => Response
  /** Mail has the address of this page, so it is described all the same. */
  described?: true
  /**
   * Only pages of this server may call it: it reads or sets their cookie. No part of the API, and
   * not described.
   */
  own_page?: true
  /** How long an answer may take, where 30 s are too short. */
  time_limit_ms?: number
  /** Bytes of body; without it the default of 1 MiB. */
  limit?: number
  /** Keys of all objects in the body together; without it 10,000. */
  most_keys?: number
  /** Clients of another service send files to it as lists of numbers. */
  takes_files?: true
  /**
   * Requests a minute and address, which rows without a credential share that are worth guessing at. Without it
   * such a row has 6,000 for itself.
   */
  per_minute?: number
  /** The path parameter with the id of a user or key. That caller needs no role or scope for itself. */
  self?: string
  /** Its body may also be a form, which browsers post from a page of another server. */
  takes_form?: true
  /** Its body may be of any type: the handler gets the bytes. */
  takes_bytes?: true
  /** Also answers of an account, or of a project, that is being deleted. */
  of_deleted?: "account" | "project"
  /** It creates messages, which is what a disk that is almost full refuses. */
  sends?: true
  /** Open to a signed-in user that still lacks the second factor that their session needs. */
  before_factor?: true
  /** To an API key, and to the secret of an application, it is 401: apps alone ask, with their public key. */
  public_key_only?: true
  /** Also takes the legacy key of an application, which names no environment. */
  any_environment?: true
  /** A WebSocket of this subprotocol: the handler answers with an `Upgrade`. */
  socket?: string
  /**
   * Pages of every origin may call it, also with a token of a caller that lists its origins. A handler asks
   * `requireOrigin` where that is too much.
   */
  any_origin?: true
  /** Asked so often, or of so little interest, that the request log leaves it out. */
  unlogged?: true
  /** An `Idempotency-Key` is honoured. */
  idempotent?: boolean
  /** The stored answer holds a secret: it is sealed, with the claim's request as context. */
  sealed?: boolean
  /** With `{name}` for one segment, as in the contract. */
  path: Path
  /**
   * Path parameters with a fixed list of words. Another word is a 404, before the body is checked.
   */
  choices?: Choices
  /** Proves the credential in the path before the body is read. Throws 401. */
  prove?: (params: PathParams<Path & string>) => Promise<void>
  /** A body is checked against it, and fields that it does not name are left out. */
  body?: Body
  /** For what a schema cannot say: gets a body that the schema lets pass. Problems go into the collection. */
  read?: (body: ValueOf<Body>, problems: Problems) => Read
  /** In its place, for a body of which parts may be wrong or have other forms: `body` is for the reference alone. */
  readRaw?: (body: unknown, problems: Problems) => Read
  query?: Query
  /** Of `data`, or of each row of a list; every answer that a test sees is held against it. */
  response?: Data
  /** Of what stands beside `data`. */
  top?: Top
  /** Of what `meta` has beside the usual. */
  meta?: Meta
  /** Of the whole answer, where its envelope is another one. */
  envelope?: Whole
  /** The content type of an answer without an envelope. */
  produces?: Produces
  /** Content types of answers beside the usual one: in the form of another service, or as a stream. */
  also_produces?: Also
  handle: (
    call: Call<BodyOf<Body, Read>, ValueOf<Query>, PathParams<Path & string, Choices>>,
  ) => Eventually<AnswerOf<Query, Data, Top, Meta, Whole, Produces> | BesideIt<Also>>
}

type Eventually<Value> = Value | Promise<Value>

/** A schema that a row does not have is inferred as `never`. */
type ValueOf<Schema> = [Schema] extends [never]
  ? unknown
  : Schema extends TSchema
    ? Static<Schema>
    : never

type BodyOf<Body, Read> = unknown extends Read ? ValueOf<Body> : Read

/** A page of rows and a feed have lists for `data`. */
type DataOf<Query, Data> = [Query] extends [never]
  ? ValueOf<Data>
  : Query extends { properties: { page: TSchema } | { after: TSchema } }
    ? ValueOf<Data>[]
    : ValueOf<Data>

type AnswerOf<Query, Data, Top, Meta, Whole, Produces> = [Whole] extends [never]
  ? [Data] extends [never]
    ? Response | Upgrade
    : [Produces] extends [never]
      ? Enveloped<DataOf<Query, Data>> & Beside<"top", Top> & Beside<"meta", Meta>
      : Bare<ValueOf<Data>> | Response
  : Split<ValueOf<Whole>>

/** What stands in place of the usual answer is a finished one. */
type BesideIt<Also> = [Also] extends [never] ? never : Response

type Beside<Name extends string, Schema> = [Schema] extends [never]
  ? object
  : Record<never, never> extends ValueOf<Schema>
    ? { [Key in Name]?: ValueOf<Schema> }
    : { [Key in Name]: ValueOf<Schema> }

/** A whole answer, as the parts of which it is made. */
type Split<Whole> = Whole extends { data: infer Data; meta: infer Meta }
  ? Enveloped<Data> & { top: Omit<Whole, "data" | "meta">; meta?: Omit<Meta, "request_id"> }
  : never

type AnyChoices = Readonly<Record<string, readonly string[]>>

/** A route of any body and query, as tables hold it. */
export interface AnyRoute extends Omit<Route, "handle" | "prove" | "read"> {
  read?: (body: never, problems: Problems) => unknown
  prove?: (params: Record<string, string>) => Promise<void>
  handle: (call: Call<never, never, never>) => Eventually<RouteAnswer>
}

/** Whether the OpenAPI document and the reference have it. */
export const isDescribed = ({ page, own_page, described }: AnyRoute): boolean =>
  described ?? (page === undefined && !own_page)

/**
 * Gives the handler the types of its path, body and query, and holds its answer against the
 * response's schema; the table forgets these types again.
 */
export const route = <
  const Path extends string,
  const Choices extends AnyChoices = Record<never, never>,
  Body extends TSchema = never,
  Read = unknown,
  Query extends TObject = never,
  Data extends TSchema = never,
  Top extends TObject = never,
  Meta extends TObject = never,
  Whole extends TSchema = never,
  Produces extends string = never,
  Also extends readonly string[] = never,
>(
  row: Route<Path, Choices, Body, Read, Query, Data, Top, Meta, Whole, Produces, Also>,
): AnyRoute => row as unknown as AnyRoute

/** What most rows of a project have in common: keys and people call them. */
export const projectRow = <const Path extends string>(
  method: Method,
  path: Path,
  scope: string,
  status = 200,
): BaseRow<Path> => ({ method, path, scope, callers: ["key", "console"], status: [status] })

/** What most rows for people in the console have in common. */
export const consoleRow = <const Path extends string>(
  method: Method,
  path: Path,
  scope: string,
  status = 200,
): BaseRow<Path> => ({ method, path, scope, callers: ["console"], status: [status] })

/** What the rows of a person about themselves have in common: passwords and tokens are short. */
export const selfRow = <const Path extends string>(method: Method, path: Path): BaseRow<Path> => ({
  ...consoleRow(method, path, "role:any"),
  limit: SHORT_BYTES,
})

/** Of a body that is short. */
export const SHORT_BYTES = 65_536

/** What rows without a credential have in common: short bodies, few requests of one address. */
export const anonymousRow = <const Path extends string>(
  method: Method,
  path: Path,
  status = 200,
): BaseRow<Path> => ({
  method,
  path,
  scope: "-",
  callers: ["none"],
  status: [status],
  per_minute: 60,
  limit: SHORT_BYTES,
})

type BaseRow<Path> = Pick<
  AnyRoute,
  "method" | "callers" | "scope" | "status" | "per_minute" | "limit"
> & { path: Path }

/** One request, as a handler sees it: its caller, and what was read of it. */
export interface Call<Body = unknown, Query = unknown, Params = object> {
  request: Request
  params: Params
  request_id: string
  ip: string
  caller: Caller
  project_id: string
  body: Body
  query: Query
  /** Present when the request carried an `Idempotency-Key`. */
  claim: Claim | undefined
  /** Aborted when the time limit passes; `request.signal` tells that the caller hung up. */
  signal: AbortSignal
}
