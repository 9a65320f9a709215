import { join } from "node:path"
import { environment } from "../lib/environment"

/** Whether this process is the compiled binary, and not the sources run by Bun. */
export const isCompiled = (): boolean => Bun.main.startsWith("/$bunfs/")

/** The command line that runs this program again: the compiled binary, or its sources under Bun. */
export const ownCommand = (...words: string[]): string[] =>
  isCompiled() ? [process.execPath, ...words] : [process.execPath, Bun.main, ...words]

/** The environment of a child process that must see neither the settings nor the files of this user. */
export const scratchEnvironment = (folder: string): Record<string, string> => ({
  PATH: environment.PATH ?? "/usr/bin:/bin",
  HOME: folder,
  TMPDIR: folder,
  XDG_CONFIG_HOME: join(folder, "config"),
  XDG_DATA_HOME: join(folder, "data"),
  XDG_STATE_HOME: join(folder, "state"),
  XDG_CACHE_HOME: join(folder, "cache"),
})
