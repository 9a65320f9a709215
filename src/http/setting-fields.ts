import { type ObjectOptions, type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { rarely } from "../lib/record-fields"
import { fits, isObject } from "./validate"

/** A setting, or a field of one: how answers show it, what a change may give, and how that is read. */
export interface SettingField<Value> {
  answer: TSchema
  patch: TSchema
  /** What is kept of a value. Undefined after a problem. */
  read(given: unknown, path: string, problems: Problems): Value | undefined
}

type FieldForm<Value> = Omit<SettingField<Value>, "read"> & {
  /** Said of a value that does not fit. */
  hint: string
  /** What is kept of a value of the form of `patch`; undefined where it does not fit. Default: all of it. */
  keep?: (given: never) => Value | undefined
  /** What null stands for, where the form has it. */
  null_is?: Value
}

/** A field of which a schema and one sentence say everything, but for what a schema cannot say. */
export const settingField = <Value>(form: FieldForm<Value>): SettingField<Value> => ({
  ...form,
  read(given, path, problems) {
    const { patch, hint, keep = (value: never) => value as Value, null_is = null as Value } = form
    if (!fits(patch, given)) return problems.add(path, "invalid", hint)
    return given === null ? null_is : (keep(given as never) ?? problems.add(path, "invalid", hint))
  },
})

/** A setting that is an object of fields, of which a change may name some. With `or_null` there may be none. */
export function settingGroup<Group extends object>(
  fields: { [Name in keyof Group]: SettingField<Group[Name]> },
  { or_null = false, ...options }: ObjectOptions & { or_null?: boolean },
) {
  const schemas = (of: (field: SettingField<unknown>) => TSchema) =>
    Object.fromEntries(
      Object.entries<SettingField<unknown>>(fields).map(([name, field]) => [name, of(field)]),
    )
  const answer = t.Object(
    schemas((field) => field.answer),
    options,
  )
  const patch = t.Object(schemas((field) => t.Optional(field.patch)))
  return {
    answer: t.Unsafe<Group | null>(or_null ? rarely(answer) : answer),
    patch: t.Unsafe<Partial<Group> | null>(t.Union([patch, t.Null()])),
    read(given: unknown, path: string, problems: Problems): Partial<Group> | undefined {
      const what = or_null ? "an object or null" : "an object"
      if (!isObject(given)) return problems.add(path, "invalid", `The value must be ${what}.`)
      const wanted: Partial<Group> = {}
      for (const [name, value] of Object.entries(given)) {
        if (Object.hasOwn(fields, name)) {
          const own = name as keyof Group
          const kept = fields[own].read(value, `${path}.${name}`, problems)
          if (kept !== undefined) wanted[own] = kept
          continue
        }
        const hint = `There is no such ${or_null ? "field" : "setting"}. There are ${Object.keys(fields).join(", ")}.`
        problems.add(`${path}.${name}`, "unknown_field", hint)
      }
      return wanted
    },
  }
}

/** All settings of something, by their names: their schemas, and how a change of some of them is read. */
export function settingRows<Change>(rows: Record<string, SettingField<unknown>>) {
  const all = Object.entries(rows)
  return {
    answer: Object.fromEntries(all.map(([name, { answer }]) => [name, answer])),
    patch: t.Object(Object.fromEntries(all.map(([name, { patch }]) => [name, t.Optional(patch)]))),
    /** The rows that a change names; others are none of it. */
    read(body: unknown, problems: Problems): Change {
      const wanted: Record<string, unknown> = {}
      if (!isObject(body))
        problems.add("body", "invalid", "The body must be an object of settings.")
      for (const [name, given] of Object.entries(isObject(body) ? body : {})) {
        const row = Object.hasOwn(rows, name) ? rows[name] : undefined
        const value = given === null ? null : row?.read(given, name, problems)
        if (row && value !== undefined) wanted[name] = value
      }
      return wanted as Change
    },
  }
}
