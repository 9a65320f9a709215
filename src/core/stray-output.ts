import { format } from "node:util"
import type { Fields } from "./log"

type Notify = (level: "info" | "warn" | "error", message: string, fields?: Fields) => void

/**
 * What the runtime and libraries would print by themselves goes to `notify`, so that every line of
 * a log has one form: warnings of the process, and the console. For this thread, and for good.
 */
export function catchStrayOutput(notify: Notify): void {
  process.removeAllListeners("warning") // the runtime's own prints it
  process.on("warning", ({ name, message }) => notify("warn", message, { kind: name }))
  const said =
    (level: "info" | "warn" | "error") =>
    (...parts: unknown[]) =>
      notify(level, format(...parts))
  const info = said("info")
  Object.assign(console, { log: info, info, debug: info, warn: said("warn"), error: said("error") })
}

/** Logs uncaught errors. The process continues, as it does without this. */
export function catchStrayErrors(notify: Notify): void {
  const uncaught = (error: unknown) => notify("error", "An error was not caught.", { error })
  process.on("uncaughtException", uncaught)
  process.on("unhandledRejection", uncaught)
}
