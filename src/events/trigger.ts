import { fail } from "../core/errors"
import type { Tx } from "../store/store"
import { emitAll, type Recorded } from "./emit"
import { lookup } from "./registry"

interface Owner {
  account_id: string
  project_id: string
}

type Data = Record<string, unknown>

export interface Wish {
  type: string
  /** In place of what the example says; objects are merged, everything else is replaced. */
  data?: Data
}

/**
 * Records an event that did not happen, which says so by `data.simulated`, and delivers it like
 * every other. The type has to be registered.
 */
export async function trigger(tx: Tx, owner: Owner, { type, data = {} }: Wish): Promise<Recorded> {
  const whole = { ...merged(exampleData(type), data), simulated: true }
  const { account_id, project_id } = owner
  const event = { account_id, project_id, subject_id: null, type, data: whole }
  const [recorded] = await emitAll(tx, [event])
  return recorded ?? fail("internal_error", "The event was not recorded.")
}

/** What an event of this type looks like. */
export const exampleData = (type: string): Data => lookup(type)?.example.data ?? {}

function merged(base: Data, changes: Data): Data {
  const entries = Object.entries(changes).map(([name, value]) => {
    const before = Object.hasOwn(base, name) ? base[name] : undefined
    return [name, isObject(before) && isObject(value) ? merged(before, value) : value]
  })
  return { ...base, ...Object.fromEntries(entries) }
}

const isObject = (value: unknown): value is Data =>
  typeof value === "object" && value !== null && !Array.isArray(value)
