/** A JSON Schema as the published document has it. */
export type JsonSchema = Record<string, unknown>

/** Adds to `out` what is wrong with the value, each with its path. */
export type Judge = (value: unknown, path: string, out: string[]) => void

/** They describe, and refuse nothing. */
const ANNOTATIONS = ["title", "description", "default", "examples", "deprecated"]

const FORMATS: Record<string, RegExp> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
}

/**
 * Compiles the schemas of one document, each once. What `properties` does not name is refused, so
 * that a schema must name every field; a keyword that is not known here is an error, not ignored.
 */
export function judges(root: object) {
  const known = new WeakMap<object, Judge>()
  const lookup = (ref: string) =>
    ref
      .slice(2)
      .split("/")
      .reduce<unknown>((at, name) => (at as JsonSchema)?.[name], root) as JsonSchema
  return function judgeOf(schema: JsonSchema): Judge {
    const before = known.get(schema)
    if (before) return before
    const made = { judge: undefined as Judge | undefined }
    known.set(schema, (value, path, out) => made.judge?.(value, path, out)) // for one within itself
    made.judge = compile(schema, judgeOf, lookup)
    known.set(schema, made.judge)
    return made.judge
  }
}

type JudgeOf = (schema: JsonSchema) => Judge
type Keyword = (given: never, schema: JsonSchema, validatorOf: JudgeOf) => Judge

function compile(
  schema: JsonSchema,
  validatorOf: JudgeOf,
  lookup: (ref: string) => JsonSchema | undefined,
): Judge {
  const { $ref } = schema
  if (typeof $ref === "string") {
    const target = lookup($ref)
    if (!target) throw new Error(`${$ref} leads nowhere`)
    return validatorOf(target)
  }
  const parts = Object.entries(schema).flatMap(([name, given]) => {
    if (ANNOTATIONS.includes(name) || name.startsWith("x-")) return []
    const keyword = KEYWORDS[name]
    if (!keyword) throw new Error(`no test knows the keyword ${name}`)
    return keyword(given as never, schema, validatorOf)
  })
  return (value, path, out) => {
    for (const part of parts) part(value, path, out)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

function kindsOf(value: unknown): string[] {
  if (value === null) return ["null"]
  if (Array.isArray(value)) return ["array"]
  return Number.isInteger(value) ? ["integer", "number"] : [typeof value]
}

const tell = (value: unknown) => (JSON.stringify(value) ?? "nothing").slice(0, 200)

/** A judge of what is of this kind; anything else is the business of `type`. */
const of =
  <Kind>(
    is: (value: unknown) => value is Kind,
    wrong: (value: Kind) => string | undefined,
  ): Judge =>
  (value, path, out) => {
    const text = is(value) ? wrong(value) : undefined
    if (text !== undefined) out.push(`${path}: ${text}: ${tell(value)}`)
  }

const isText = (value: unknown): value is string => typeof value === "string"
const isNumber = (value: unknown): value is number => typeof value === "number"
const isAny = (value: unknown): value is unknown => value !== undefined

const nothing: Judge = (value, path, out) =>
  void out.push(`${path}: the schema allows nothing here: ${tell(value)}`)

const KEYWORDS: Record<string, Keyword> = {
  type: (given: string | string[]) => {
    const kinds = [given].flat()
    return of(isAny, (value) =>
      kindsOf(value).some((kind) => kinds.includes(kind)) ? undefined : `not ${kinds.join(" or ")}`,
    )
  },
  const: (given: unknown) =>
    of(isAny, (value) => (value === given ? undefined : `not ${tell(given)}`)),
  enum: (given: unknown[]) =>
    of(isAny, (value) => (given.includes(value) ? undefined : `none of ${tell(given)}`)),
  format: (given: string) => {
    const shape = FORMATS[given]
    if (!shape) throw new Error(`no test knows the format ${given}`)
    return of(isText, (text) => (shape.test(text) ? undefined : `no ${given}`))
  },
  pattern: (given: string) => {
    const shape = new RegExp(given, "u")
    return of(isText, (text) => (shape.test(text) ? undefined : `not as ${given}`))
  },
  minLength: (least: number) =>
    of(isText, (text) => ([...text].length < least ? `shorter than ${least}` : undefined)),
  maxLength: (most: number) =>
    of(isText, (text) =>
      text.length > most && [...text].length > most ? `longer than ${most}` : undefined,
    ),
  minimum: (least: number) => of(isNumber, (n) => (n < least ? `below ${least}` : undefined)),
  maximum: (most: number) => of(isNumber, (n) => (n > most ? `above ${most}` : undefined)),
  minItems: (least: number) =>
    of(Array.isArray, (list) => (list.length < least ? `fewer than ${least}` : undefined)),
  maxItems: (most: number) =>
    of(Array.isArray, (list) => (list.length > most ? `more than ${most}` : undefined)),
  minProperties: (least: number) =>
    of(isObject, (all) => (Object.keys(all).length < least ? `fewer than ${least}` : undefined)),
  maxProperties: (most: number) =>
    of(isObject, (all) => (Object.keys(all).length > most ? `more than ${most}` : undefined)),
  required: (names: string[]) => (value, path, out) => {
    if (!isObject(value)) return
    for (const name of names) if (value[name] === undefined) out.push(`${path}.${name}: missing`)
  },
  items: (given: JsonSchema, _, validatorOf) => {
    const judge = validatorOf(given)
    return (value, path, out) => {
      if (Array.isArray(value)) value.forEach((one, at) => void judge(one, `${path}[${at}]`, out))
    }
  },
  properties: (given: Record<string, JsonSchema>, { additionalProperties }, validatorOf) => {
    const fields = new Map(Object.entries(given).map(([name, field]) => [name, validatorOf(field)]))
    return (value, path, out) => {
      if (!isObject(value)) return
      for (const [name, inner] of Object.entries(value)) {
        const judge = fields.get(name)
        if (judge) judge(inner, `${path}.${name}`, out)
        else if (additionalProperties === undefined) {
          out.push(`${path}.${name}: the schema does not name it: ${tell(inner)}`)
        }
      }
    }
  },
  additionalProperties: (given: JsonSchema | boolean, { properties = {} }, validatorOf) => {
    if (given === true) return () => {}
    const judge = given === false ? nothing : validatorOf(given)
    return (value, path, out) => {
      if (!isObject(value)) return
      for (const [name, inner] of Object.entries(value)) {
        if (!Object.hasOwn(properties as object, name)) judge(inner, `${path}.${name}`, out)
      }
    }
  },
  propertyNames: (given: JsonSchema, _, validatorOf) => {
    const judge = validatorOf(given)
    return (value, path, out) => {
      if (isObject(value))
        for (const name of Object.keys(value)) judge(name, `${path}.${name}`, out)
    }
  },
  not: (given: JsonSchema, _, validatorOf) => {
    const judge = validatorOf(given)
    return (value, path, out) => {
      const faults: string[] = []
      judge(value, path, faults)
      if (faults.length === 0) out.push(`${path}: as it must not be: ${tell(value)}`)
    }
  },
  anyOf: (forms: JsonSchema[], _, validatorOf) => someOf(forms.map(validatorOf)),
  oneOf: (forms: JsonSchema[], _, validatorOf) => someOf(forms.map(validatorOf)),
}

/** Of a value that fits no form, the nearest form says why. */
function someOf(forms: Judge[]): Judge {
  return (value, path, out) => {
    let nearest: string[] | undefined
    for (const judge of forms) {
      const own: string[] = []
      judge(value, path, own)
      if (own.length === 0) return
      if (!nearest || own.length < nearest.length) nearest = own
    }
    out.push(...(nearest ?? []))
  }
}
