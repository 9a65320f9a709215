import { usage } from "./failure"

/** `on` or `off`, as an option of a setting takes it; undefined stays undefined. */
export function onOff(text: string | undefined, option: string): boolean | undefined {
  if (text === undefined) return undefined
  if (text === "on" || text === "true") return true
  if (text === "off" || text === "false") return false
  throw usage(`${option}: "${text}" is neither on nor off`)
}

/** Without what was not said, so that it stays as it is. */
export const given = <Fields extends object>(fields: Fields): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<Fields>
