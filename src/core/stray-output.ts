import { format } from "node:util"
import type { Fields } from "./log"

type Tell = (level: "info" | "warn" | "error", message: string, fields?: Fields) => void

/**
 * What the runtime and libraries would print by themselves goes to `tell`, so that every line of
 * a log has one form: warnings of the process, and the console. For this thread, and for good.
 */
export function catchStrayOutput(tell: Tell): void {
  process.removeAllListeners("warning") // the runtime's own prints it
  process.on("warning", ({ name, message }) => tell("warn", message, { kind: name }))
  const said =
    (level: "info" | "warn" | "error") =>
    (...parts: unknown[]) =>
      tell(level, format(...parts))
  const info = said("info")
  Object.assign(console, { log: info, info, debug: info, warn: said("warn"), error: said("error") })
}

/** Logs uncaught errors. The process continues, as it does without this. */
export function catchStrayErrors(tell: Tell): void {
  const uncaught = (error: unknown) => tell("error", "An error was not caught.", { error })
  process.on("uncaughtException", uncaught)
  process.on("unhandledRejection", uncaught)
}
