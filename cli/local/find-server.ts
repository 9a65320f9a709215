import { accessSync, constants } from "node:fs"
import { dirname, isAbsolute, join } from "node:path"
import { defaultDataDir, type Loaded } from "../../src/core/config"
import { environment } from "../lib/environment"
import { optionWords } from "../lib/flags"
import { adminSockets, ifThere, SOCKET } from "./server-process"

const MOST_NAMED = 3

/** Where a running server may take orders: in the folder of the settings, then in that of `up`. */
export function socketsFor(loaded: Loaded): string[] {
  const folders = [loaded.values.data_dir]
  // A named folder is the only one used: an order for another server would do harm.
  const is_named = loaded.explain("data_dir").source !== "default" || loaded.values.database_url
  if (!is_named) folders.push(defaultDataDir(environment, "belfry-up"))
  return folders.map(socketIn)
}

/** Where the server of this data folder takes orders. */
export const socketIn = (data_dir: string): string => join(data_dir, SOCKET)

/** What to do where the named folder is empty: the servers of this machine, as options to give. */
export function whereServersRun(): string | undefined {
  const folders = runningFolders().slice(0, MOST_NAMED)
  if (folders.length === 0) return undefined
  const options = folders.map((folder) => `\`${optionWords({ "data-dir": folder }).trim()}\``)
  return `a server runs on this machine: give ${options.join(" or ")}`
}

/** Folders of the servers that this user may give orders to; none where the system does not tell. */
export function runningFolders(list?: string): string[] {
  const sockets = ifThere(() => adminSockets(list)) ?? []
  const ours = sockets.filter(({ path }) => isAbsolute(path) && isOpenToUs(path))
  return [...new Set(ours.map(({ path }) => dirname(path)))].sort()
}

function isOpenToUs(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
