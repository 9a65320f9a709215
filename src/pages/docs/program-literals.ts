/** How a language writes values of JSON. */
interface LiteralForm {
  step: string
  text: (value: string) => string
  name: (key: string) => string
  words: { true: string; false: string; null: string }
  list: readonly [string, string]
  record: readonly [string, string]
  /** Of a record without fields, where the brackets alone mean a list. */
  empty?: string
}

const JSON_WORDS = { true: "true", false: "false", null: "null" }
const BRACKETS = ["[", "]"] as const
const BRACES = ["{", "}"] as const

/** A value as TypeScript writes it. `indent` is that of the line on which it begins. */
export const typescriptLiteral = (value: unknown, indent: string): string =>
  literal(value, indent, TYPESCRIPT)

const TYPESCRIPT: LiteralForm = {
  step: "  ",
  text: (value) => JSON.stringify(value),
  name: (key) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: `,
  words: JSON_WORDS,
  list: BRACKETS,
  record: BRACES,
}

/** A value as Python writes it: strings have the escapes of JSON, and words have capitals. */
export const pythonLiteral = (value: unknown, indent: string): string =>
  literal(value, indent, PYTHON)

const PYTHON: LiteralForm = {
  step: "    ",
  text: (value) => JSON.stringify(value),
  name: (key) => `${JSON.stringify(key)}: `,
  words: { true: "True", false: "False", null: "None" },
  list: BRACKETS,
  record: BRACES,
}

/** A value as PHP writes it. A record is an array with keys. */
export const phpLiteral = (value: unknown, indent: string): string => literal(value, indent, PHP)

/** In double quotes PHP fills in variables. Its escape of a code point is another one. */
const phpText = (value: string) =>
  JSON.stringify(value)
    .replaceAll("$", "\\$")
    .replaceAll(/\\u([0-9a-f]{4})/g, "\\u{$1}")

const PHP: LiteralForm = {
  step: "    ",
  text: phpText,
  name: (key) => `${phpText(key)} => `,
  words: JSON_WORDS,
  list: BRACKETS,
  record: BRACKETS,
  empty: "new stdClass()",
}

/** A text as Go writes it: as it stands between backticks, where it has none itself. */
export const goText = (text: string): string =>
  text.includes("`") ? JSON.stringify(text) : `\`${text}\``

function literal(value: unknown, indent: string, form: LiteralForm): string {
  if (typeof value === "string") return form.text(value)
  if (value === null) return form.words.null
  if (typeof value === "boolean") return value ? form.words.true : form.words.false
  if (typeof value !== "object") return String(value)
  const inner = indent + form.step
  const is_list = Array.isArray(value)
  const [open, close] = is_list ? form.list : form.record
  const parts = is_list
    ? value.map((one) => literal(one, inner, form))
    : Object.entries(value).map(([key, one]) => form.name(key) + literal(one, inner, form))
  if (parts.length === 0) return is_list ? open + close : (form.empty ?? open + close)
  const is_plain = is_list && value.every((one) => typeof one !== "object" || one === null)
  const line = `${open}${parts.join(", ")}${close}`
  if (is_plain && line.length < LONGEST_LIST) return line
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`
}

const LONGEST_LIST = 60
