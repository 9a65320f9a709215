import type { OperationTypes, TypesOf } from "./operation"
import { operations } from "./operations"

/** `METHOD /path`, as the OpenAPI document has them. */
export type OperationName = keyof typeof operations

/** One request, ready for a transport. */
export interface ApiRequest {
  method: string
  /** With its parameters filled in, without the query. */
  path: string
  query: Readonly<Record<string, unknown>>
  /** Absent where there is none. */
  body?: unknown
  headers: Readonly<Record<string, string>>
  /** The content type of the answer. */
  accept: string
}

/**
 * Sends a request with a credential, and resolves to the body of its answer: what JSON says, or the
 * bytes of anything else. Throws for an answer that is no success.
 */
export type Transport = (request: ApiRequest) => Promise<unknown>

type TypesNamed<Name extends OperationName> = TypesOf<(typeof operations)[Name]> & OperationTypes

/** The whole body of the answer: mostly `data` and `meta`. */
export type AnswerOf<Name extends OperationName> = TypesNamed<Name>["answer"]

type ParamNames<Name extends string> = Name extends `${string}{${infer Param}}${infer Rest}`
  ? Param | ParamNames<Rest>
  : never

/** `Types[Key]` under its name, which may be left out where nothing in it is required. */
type InputPart<Types, Key extends string> =
  Types extends Record<Key, infer Value>
    ? Record<never, never> extends Value
      ? { [Name in Key]?: Value }
      : { [Name in Key]: Value }
    : object

/** What one operation needs: the parameters of its path, its query and its body. */
type InputOf<Name extends OperationName> = ([ParamNames<Name>] extends [never]
  ? object
  : { params: Record<ParamNames<Name>, string> }) &
  InputPart<TypesNamed<Name>, "query"> &
  InputPart<TypesNamed<Name>, "body"> & { headers?: Readonly<Record<string, string>> }

/** May be left out where nothing of it is needed. */
export type OperationInput<Name extends OperationName> =
  Record<never, never> extends InputOf<Name> ? [input?: InputOf<Name>] : [input: InputOf<Name>]

/**
 * Sends one request of the API, with the types of its operation:
 * `request(transport, "GET /v1/projects/{project_id}", { params: { project_id } })`.
 */
export async function request<Name extends OperationName>(
  transport: Transport,
  name: Name,
  ...[input]: OperationInput<Name>
): Promise<AnswerOf<Name>> {
  return (await transport(requestOf(name, input as AnyInput | undefined))) as AnswerOf<Name>
}

/** As `request` takes it, for a name that is only known while the program runs. */
export interface AnyInput {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, unknown>>
  body?: unknown
  headers?: Readonly<Record<string, string>>
}

/**
 * The request as it would be sent. Throws where a parameter of the path is missing, or has a value that
 * no path can hold.
 */
export function requestOf(name: OperationName, input: AnyInput = {}): ApiRequest {
  const { params = {}, query = {}, body, headers = {} } = input
  const { method, path } = addressOf(name)
  const { produces = "application/json" } = operations[name]
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, param: string) => {
    const value = params[param]
    if (value === undefined || value === "") throw new Error(`${name} needs ${param}`)
    const problem = stepProblem(value)
    if (problem !== undefined) throw new Error(`${name}: ${param}: ${problem}`)
    return encodeURIComponent(value)
  })
  return {
    method,
    path: filled,
    query,
    headers,
    accept: produces,
    ...(body !== undefined && { body }),
  }
}

/**
 * Why no path can hold a value; undefined for every other one. Steps of a path are resolved before a
 * request is sent, however they are encoded (URL Standard, 4.4).
 */
export const stepProblem = (value: string): string | undefined =>
  value === "." || value === ".."
    ? `A URL cannot hold ${value} as a name, because it is a step of its path.`
    : undefined

/** Method and path of an operation. */
export function addressOf(name: OperationName): { method: string; path: string } {
  const [method = "", path = ""] = name.split(" ", 2)
  return { method, path }
}

/** The parameters of its path, in their order. */
export const paramsOf = (name: OperationName): string[] =>
  [...name.matchAll(/\{(\w+)\}/g)].map(([, param = ""]) => param)
