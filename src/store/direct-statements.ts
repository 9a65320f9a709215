import type { Statement as Compiled } from "bun:sqlite"
import { Column, is, Param, Placeholder, SQL } from "drizzle-orm"
import { isPlain } from "./columns"

type Input = Record<string, unknown>

/** What drizzle's prepared query for bun:sqlite consists of (0.45); it keeps these to itself. */
interface Innards {
  executeMethod: "run" | "all" | "get"
  query: { sql: string; params: unknown[] }
  stmt: Compiled
  logger: { logQuery(text: string, params: unknown[]): void }
  fields: { path: string[]; field: unknown }[] | undefined
  customResultMapper: unknown
  joinsNotNullableMap: Record<string, boolean> | undefined
}

type Decoder = (value: never) => unknown
type Execute = (values: Input) => unknown

/**
 * The same statement without the interpreter around it: drizzle walks the fields of a query anew for
 * every row (a message takes 20 µs), here encoders and decoders are found once. Undefined for a
 * statement of a kind that this does not know; then drizzle's own way is right.
 */
export function directly(statement: object): Execute | undefined {
  const { executeMethod, query, stmt, logger, ...rest } = statement as Innards
  if (!stmt || !logger || rest.customResultMapper) return undefined
  const encode = valuesOf(query.params)
  const run = (values: Input, way: "run" | "values") => {
    logger.logQuery(query.sql, query.params)
    return stmt[way](...(encode(values) as never[]))
  }
  if (executeMethod === "run") return (values) => run(values, "run")
  const decode = rest.fields && decoderOf(rest.fields, rest.joinsNotNullableMap)
  if (executeMethod !== "all" || !decode) return undefined
  return (values) => (run(values, "values") as unknown[][]).map(decode)
}

/**
 * The text of a select and its values, to be run elsewhere, and what makes its rows of the lists of values that
 * come back. Throws for a select whose rows may lack a whole table.
 */
export function takenApart(statement: object) {
  const { query, fields, joinsNotNullableMap } = statement as Innards
  const decode = fields && decoderOf(fields, joinsNotNullableMap)
  if (!decode) throw new Error("This select cannot be read in another thread.")
  return { text: query.sql, values: valuesOf(query.params)({}), decode }
}

function valuesOf(params: unknown[]): (values: Input) => unknown[] {
  const encoders = params.map((param): ((values: Input) => unknown) => {
    if (is(param, Placeholder)) return (values) => values[param.name]
    if (!is(param, Param)) return () => param
    const { value, encoder } = param
    if (!is(value, Placeholder)) return () => encoder.mapToDriverValue(value)
    return (values) => encoder.mapToDriverValue(values[value.name])
  })
  return (values) => encoders.map((encoder) => encoder(values))
}

/** Undefined where an outer join may leave a whole table out of a row. */
function decoderOf(
  fields: { path: string[]; field: unknown }[],
  joined: Record<string, boolean> | undefined,
): ((row: unknown[]) => unknown) | undefined {
  const may_lack = Object.values(joined ?? {}).includes(false)
  if (may_lack && fields.some(({ path }) => path.length > 1)) return undefined
  const columns: { table: string | undefined; name: string; decode: Decoder | undefined }[] = []
  const tables = new Set<string>()
  for (const { path, field } of fields) {
    const name = path.at(-1)
    const decoder = decoderOfField(field)
    if (name === undefined || path.length > 2 || !decoder) return undefined
    if (path.length === 2) tables.add(path[0] ?? "")
    columns.push({ table: path.length === 2 ? path[0] : undefined, name, ...decoder })
  }
  // A copy of this has room for all fields at once.
  const empty: Input = {}
  if (tables.size === 0) for (const { name } of columns) empty[name] = null
  return (row) => {
    const result: Input = { ...empty }
    for (const table of tables) result[table] = {}
    for (let index = 0; index < columns.length; index++) {
      const column = columns[index]
      if (!column) continue
      const { table, name, decode } = column
      const value = row[index] ?? null
      const place = table === undefined ? result : (result[table] as Input)
      place[name] = value === null || !decode ? value : decode(value as never)
    }
    return result
  }
}

/** Most columns give their value as it is, so most have nothing to call. */
function decoderOfField(field: unknown): { decode: Decoder | undefined } | undefined {
  if (is(field, Column)) {
    return {
      decode: isPlain(field).decoded ? undefined : (value) => field.mapFromDriverValue(value),
    }
  }
  const source = is(field, SQL.Aliased) ? field.sql : field
  if (!is(source, SQL)) return undefined
  const { decoder } = source as unknown as { decoder: { mapFromDriverValue: Decoder } }
  return { decode: (value) => decoder.mapFromDriverValue(value) }
}
