import type { OperationName } from "../../src/client/client"
import type { OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import { deletes, type Resource, row } from "./resource"
import { ago, type Columns, wide } from "./table"

/** More columns are no table. */
const MOST_COLUMNS = 5

/**
 * Makes the commands of plain nouns. A collection of the API is a plain noun if it has five routes: list, create, get,
 * change and remove. None of them may stand in a row of `named`. The routes give the texts, flags and columns.
 */
export function plainNouns(named: readonly Resource[]): Resource[] {
  const taken = new Set<string>(
    named.flatMap(({ rows }) => rows.flatMap(({ route }) => route ?? [])),
  )
  return Object.keys(operations).flatMap((get) => {
    const [, path] = ITEM.exec(get) ?? []
    if (path === undefined) return []
    const item = get.slice("GET ".length)
    const routes = [`GET ${path}`, `POST ${path}`, get, `PATCH ${item}`, `DELETE ${item}`]
    const is_plain = routes.every((name) => name in operations && !taken.has(name))
    return is_plain ? [resourceOf(path, routes as OperationName[])] : []
  })
}

const ITEM = /^GET (\/v1\/.*)\/\{\w+\}$/

function resourceOf(path: string, routes: readonly OperationName[]): Resource {
  const [list, create, get, change, remove] = routes
  const noun = path.split("/").at(-1)?.replaceAll("-", " ") ?? ""
  const { fields = "" }: OperationRow = operations[create as OperationName]
  return {
    noun,
    about: `manage ${noun}`,
    rows: [
      row("list", list as never, { columns: columnsFor(fields.split(" ")) as Columns<unknown> }),
      row("create", create as never, { done: (made) => `created ${idOf(made)}` }),
      row("get <id>", get as never),
      row("update <id>", change as never, { done: (record) => `changed ${idOf(record)}` }),
      row(
        "rm <id>",
        remove as never,
        deletes((id) => `${id} will be deleted now.`),
      ),
    ],
  }
}

type AnyRecord = Record<string, unknown>

const idOf = (record: unknown) => (record as AnyRecord).id

/** The first fields of a record, and its age. */
const columnsFor = (fields: string[]): Columns<AnyRecord> => ({
  ...Object.fromEntries(
    fields
      .filter((name) => !name.endsWith("_at"))
      .slice(0, MOST_COLUMNS)
      .map((name) => [name.toUpperCase(), wide((record: AnyRecord) => record[name])]),
  ),
  AGE: ago(({ created_at }) => created_at),
})
