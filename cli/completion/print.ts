import type { Action } from "../context"
import { usage } from "../failure"
import { scripts, shells } from "./scripts"

/** The script as it is, in a pipe and on a terminal alike. */
export const print: Action<object> = async ({ output }, _, name = "") => {
  const shell = shells.find((one) => one === name)
  if (!shell) throw usage(`SHELL: "${name}" is not one of ${shells.join(", ")}`)
  await output.raw(scripts[shell])
  return undefined
}
