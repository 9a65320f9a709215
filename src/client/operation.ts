/** One field of a body or one parameter of a query, as the OpenAPI document describes it. */
export interface OperationField {
  /** `any`: it may have several forms. */
  type: "string" | "integer" | "number" | "boolean" | "array" | "object" | "any"
  /** Of an array: the type of its items. */
  items?: OperationField["type"]
  /** The words that are accepted; of an array, for its items. */
  enum?: readonly (string | number | boolean)[]
  required?: true
  /** `null` is accepted, too. */
  nullable?: true
  /** What the server takes where the field is absent. */
  default?: string | number | boolean
  description?: string
}

type OperationFields = Readonly<Record<string, OperationField>>

/** What an operation takes and gives. Its method and path are its name in the table. */
export interface OperationRow {
  summary: string
  /** Without the parameters of pages: `paged` says that these are taken. */
  query?: OperationFields
  body?: OperationFields
  /** The component of `data`; of each row, where `data` is a list. A key of `Components`. */
  data?: string
  /** `data` is a list. */
  many?: true
  /** Of a change: the names of the fields of `data`, with spaces between them. */
  fields?: string
  /** Takes `PageParams`, and tells the next page in `meta`. */
  paged?: true
  /** Takes the header `Idempotency-Key`. */
  idempotent?: true
  /** The content type of an answer that is no JSON. */
  produces?: string
}

/** The parameters that every list takes. */
export interface PageParams {
  page?: number
  per_page?: number
  cursor?: string
  after?: string
  before?: string
}

/** The types of one operation; nothing of them exists while the program runs. */
export interface OperationTypes {
  query?: object
  body?: unknown
  answer: unknown
}

declare const TYPES: unique symbol

interface TypedOperation<Types extends OperationTypes> extends OperationRow {
  readonly [TYPES]?: Types
}

/** Gives a row of the table its types. */
export const operation = <Types extends OperationTypes>(row: OperationRow): TypedOperation<Types> =>
  row

export type TypesOf<Row> = Row extends TypedOperation<infer Types> ? Types : never
