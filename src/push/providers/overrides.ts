type Fields = Record<string, unknown>

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What is built for a provider, with the overrides that the request gives for it: objects are merged, all else is replaced. */
export function overridden(built: Fields, overrides?: Fields): Fields {
  if (!overrides) return built
  const changed = Object.entries(overrides).map(([name, value]) => {
    const own = Object.hasOwn(built, name) ? built[name] : undefined
    return [name, isFields(own) && isFields(value) ? overridden(own, value) : value]
  })
  return { ...built, ...Object.fromEntries(changed) }
}

/** Without the fields that have no value. */
export const present = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
