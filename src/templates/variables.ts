import { momentFrom } from "./moment"
import type { TemplateVariable } from "./tables"

type Check = (value: unknown) => boolean

const isText: Check = (value) => ["string", "number", "boolean"].includes(typeof value)

const isNumber: Check = (value) =>
  typeof value === "number" || (typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()))

const isDate: Check = (value) =>
  ["number", "string"].includes(typeof value) && !Number.isNaN(momentFrom(value))

const isAddress: Check = (value) =>
  typeof value === "string" && /^(https?:\/\/|mailto:|tel:)\S+$/i.test(value) && URL.canParse(value)

const CHECKS: Record<TemplateVariable["type"], Check> = {
  string: isText,
  number: isNumber,
  boolean: (value) => typeof value === "boolean",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  date: isDate,
  url: isAddress,
}

/**
 * Whether a value can stand for a variable of this type. A number may be written as text, and a date is
 * ISO 8601 or epoch milliseconds.
 */
export const isOfType = (type: TemplateVariable["type"], value: unknown): boolean =>
  CHECKS[type](value)
