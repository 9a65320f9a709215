import type { Static, TObject, TSchema } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { NounFilter } from "../identity/noun"
import { fieldsOf } from "../lib/record-fields"
import type { RowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { Deleted, deleted } from "./field-schemas"
import { answerOnce } from "./idempotency"
import { type ListParts, listPage, type PageQuery } from "./page"
import { type AnyRoute, type Call, projectRow } from "./route"

/** What the rows take of a noun; `noun()` makes all of it. */
interface RoutedNoun<Row, Response> {
  toResponse: ((row: Row) => Response) | undefined
  find: (db: Reader, project_id: string, path_name: string) => Promise<Row>
  forUpdate: (tx: Tx, project_id: string, path_name: string) => Promise<Row>
  list: (db: Reader, project_id: string, filter: NounFilter) => RowList<Row>
  insert: (tx: Tx, by: Caller, input: never) => Promise<Row>
  update: (tx: Tx, by: Caller, before: Row, changes: never) => Promise<Row>
  remove: (tx: Tx, by: Caller, row: Row) => Promise<void>
}

/** What a row says besides its method, its path and what the noun knows. */
type Described = Pick<AnyRoute, "summary" | "description" | "errors" | "example">

interface ListRow<Query extends TObject> extends Described {
  query: Query
  filter?: (query: Static<Query>) => NounFilter
}

interface CreateRow<Row, Body extends TSchema, Input> extends Described {
  body: Body
  read?: (body: Static<Body>, problems: Problems) => Input
  /** Default: the input is stored. */
  create?: (tx: Tx, caller: Caller, input: Input) => Promise<Row>
}

interface ChangeRow<Row, Body extends TSchema, Input> extends Described {
  body: Body
  read?: (body: Static<Body>, problems: Problems) => Input
  /** Of a locked row. Default: the fields of the input are stored. */
  change?: (tx: Tx, caller: Caller, before: Row, input: Input) => Promise<Row>
}

interface RemoveRow<Row> extends Described {
  /** Of a locked row. */
  remove?: (tx: Tx, caller: Caller, row: Row) => Promise<void>
}

type NounCall = Call<never, never, Record<string, string>>

const nameIn = ({ params }: NounCall): string => Object.values(params)[0] ?? ""

/**
 * Makes the rows of a plain noun. Method and path stand where they are called; each row may bring the function that
 * differs from the noun's own.
 */
export function nounRows<Row extends { id: string }, Schema extends TObject>(
  noun: RoutedNoun<Row, Static<Schema>>,
  response: Schema,
  [read_scope, write_scope]: readonly [read: string, write: string],
  { store, cursors }: ListParts,
) {
  const toResponse =
    noun.toResponse ?? ((row: Row) => fieldsOf(response, row as unknown as Static<Schema>))
  const record = (row: Row) => ({ data: toResponse(row) })
  return {
    list: <Query extends TObject>(path: string, { filter, ...row }: ListRow<Query>): AnyRoute => ({
      ...projectRow("GET", path, read_scope),
      ...row,
      response,
      handle: (call: Call<never, never, never>) => {
        const query = call.query as Static<Query> & PageQuery
        const rows = noun.list(store.read, call.project_id, filter?.(query) ?? {})
        return listPage({ ...call, query }, cursors, rows, toResponse)
      },
    }),
    create: <Body extends TSchema, Input = Static<Body>>(
      path: string,
      { create, ...row }: CreateRow<Row, Body, Input>,
    ): AnyRoute => ({
      ...projectRow("POST", path, write_scope, 201),
      ...row,
      response,
      idempotent: true,
      handle: ({ caller, body, claim }: NounCall) =>
        answerOnce(store, claim, async (tx) => {
          return toResponse(await (create ?? noun.insert)(tx, caller, body))
        }),
    }),
    get: (path: string, row: Described): AnyRoute => ({
      ...projectRow("GET", path, read_scope),
      ...row,
      response,
      handle: async (call: NounCall) =>
        record(await noun.find(store.read, call.project_id, nameIn(call))),
    }),
    change: <Body extends TSchema, Input = Static<Body>>(
      path: string,
      { change, ...row }: ChangeRow<Row, Body, Input>,
    ): AnyRoute => ({
      ...projectRow("PATCH", path, write_scope),
      ...row,
      response,
      handle: (call: NounCall) =>
        store.tx(async (tx) => {
          const before = await noun.forUpdate(tx, call.project_id, nameIn(call))
          return record(await (change ?? noun.update)(tx, call.caller, before, call.body))
        }),
    }),
    remove: (path: string, { remove = noun.remove, ...row }: RemoveRow<Row>): AnyRoute => ({
      ...projectRow("DELETE", path, write_scope),
      ...row,
      response: Deleted,
      handle: (call: NounCall) =>
        store.tx(async (tx) => {
          const before = await noun.forUpdate(tx, call.project_id, nameIn(call))
          await remove(tx, call.caller, before)
          return deleted(before.id)
        }),
    }),
  }
}
