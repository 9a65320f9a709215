import type { TObject, TSchema } from "@sinclair/typebox"
import type { ApiError, ErrorCode } from "../core/errors"
import type { Call } from "./call"
import type { Problems } from "./problems"
import type { Upgrade } from "./socket"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

export type CallerKind = "key" | "console" | "app" | "user" | "subscriber" | "none"

/** `data` under its envelope. */
export interface Enveloped {
  data: unknown
  status?: number
  top?: object
  meta?: object
  headers?: Record<string, string>
}

/** What a handler returns: what goes under the envelope, a finished response, or a connection. */
export type Answer = Enveloped | Response | Upgrade

/**
 * One row of the service's interface. Nothing answers without such a row, and a row cannot be
 * written without saying who may call and with which scope.
 */
export interface Route<Body = unknown, Query = unknown> {
  method: Method
  /** With `{name}` for one segment, as in the contract. */
  path: string
  /** Parameters of the path that are one of these words: another is 404, whatever the body. */
  choices?: Readonly<Record<string, readonly string[]>>
  /** Parameters of the path and query that are credentials: logs and errors never show them. */
  credentials?: readonly string[]
  /** Proves the credential in the path before the body is read. Throws 401. */
  prove?: (params: Record<string, string>) => Promise<void>
  callers: CallerKind[]
  /** A scope, several joined by `|`, `role:…`, or `-`: the credential alone is enough. */
  scope: string
  /** Of a success, as the contract lists them; the first is the default. */
  status: [number, ...number[]]
  /** Beside them, of answers in the same form that tell of trouble. */
  also?: readonly number[]
  summary: string
  /** A few sentences more, for the reference. */
  description?: string
  /** The body's shape, for the reference and, without `read`, for validation. */
  body?: TSchema
  /** A body that is taken, for the reference. */
  example?: unknown
  /** Reads a body that needs more than a schema can say. Problems go into the collection. */
  read?: (body: unknown, problems: Problems) => Body
  /** As every PATCH, though it is none: a body that names no known field is refused. */
  changes?: true
  query?: TObject
  /** Request headers that only this route reads, for the reference. */
  headers?: TObject
  /** Of `data`, or of each row of a list; every answer that a test sees is held against it. */
  response?: TSchema
  /** Of what stands beside `data`. */
  top?: TObject
  /** Of what `meta` has beside the usual. */
  meta?: TObject
  /** Of the whole answer, where its envelope is another one. */
  envelope?: TSchema
  /** The content type of an answer without an envelope. */
  produces?: string
  /** What it may refuse beside what any route does; with a status where it is not the usual one. */
  errors?: readonly (ErrorCode | readonly [ErrorCode, number])[]
  /** A page for people, no part of the API: its body is a form, and this shows its refusals. */
  page?: (error: ApiError) => Response
  /** Bytes of body; without it the default of 1 MiB. */
  limit?: number
  /** Requests a minute and address, for routes without a credential; without it 6,000. */
  per_minute?: number
  /** The path parameter of a user or key who may do this to himself, whatever his role or scopes. */
  self?: string
  /** Its JSON may come under whatever content type the other side gives it. */
  any_type?: true
  /** Also answers of an account, or of a project, that is being deleted. */
  of_deleted?: "account" | "project"
  /** It creates messages, which is what a disk that is almost full refuses. */
  sends?: true
  /** A WebSocket of this subprotocol: the handler answers with an `Upgrade`. */
  socket?: string
  /** Asked so often, or of so little interest, that the request log leaves it out. */
  unlogged?: true
  /** An `Idempotency-Key` is honoured. */
  idempotent?: boolean
  /** The stored answer holds a secret: it is sealed, with the claim's request as context. */
  sealed?: boolean
  handle: (call: Call<Body, Query>) => Promise<Answer> | Answer
}

/** A route of any body and query, as tables hold it. */
export type AnyRoute = Route<never, never>

/** Gives the handler the types of its own body and query; the table forgets them again. */
export const route = <Body, Query>(row: Route<Body, Query>): AnyRoute => row as unknown as AnyRoute
