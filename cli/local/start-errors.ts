import type { Loaded, Settings } from "../../src/core/config"
import type { ArchiveError } from "../../src/operations/backup/archive-cursor"
import { exits, Failure } from "../lib/errors"
import { runningFolders, whereServersRun } from "./find-server"
import { listenerOn, serverOf } from "./server-process"
import { explained } from "./settings"

/** Runs what opens the data of these settings. What goes wrong comes as a failure with its own exit code. */
export async function atData<Result>(
  { values }: Pick<Loaded, "values">,
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    throw startFailure(error, values)
  }
}

/** Why a server on this machine cannot start or go on, or its data cannot be used, as a failure. */
export function startFailure(error: unknown, where: Settings): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error
  const code = "code" in error ? String(error.code) : ""
  if (code === "EADDRINUSE") {
    const address = addressIn(error, where["http.listen"])
    return portTaken(address, settingOf(address, where))
  }
  if ("syscall" in error && error.syscall === "listen") {
    return cannotListen(addressIn(error, where["http.listen"]), error)
  }
  if (conflicts.includes(error.name)) {
    return new Failure(exits.conflict, "conflict", error.message)
  }
  if (error.name === "ArchiveError") {
    const { path, fault, differences, message } = error as ArchiveError
    return new Failure(exits.storage, "archive", message, { details: { path, fault, differences } })
  }
  if (error.name === "DatabaseAway") return databaseAway(error.message)
  if (code.startsWith("ERR_POSTGRES") && where.database_url) {
    return databaseFailure(error, where.database_url)
  }
  if (isStorage(error, code)) {
    const details = { data_dir: where.data_dir }
    const hint = error.name === "NoDatabase" ? whereServersRun() : HINTS[code || error.name]
    return new Failure(
      exits.storage,
      "storage",
      error.message,
      hint ? { details, hint } : { details },
    )
  }
  return explained(error)
}

function databaseAway(message: string): Failure {
  return new Failure(exits.unreachable, "unreachable", message, {
    hint: "check that Postgres runs, and that DATABASE_URL has its host and port",
  })
}

function databaseFailure({ message }: Error, url: string): Failure {
  const database = URL.canParse(url) ? withoutPassword(new URL(url)) : "DATABASE_URL"
  return new Failure(exits.storage, "storage", `The database ${database}: ${message}.`, {
    details: { database },
    hint: "check that Postgres runs, and that user, password and name in DATABASE_URL are right",
  })
}

function withoutPassword(url: URL): string {
  if (url.password) url.password = "********"
  return url.href
}

/** A port that was asked for with this flag or setting, and that another program has. Exit 69. */
export function portTaken(address: string, asked_by: string): Failure {
  const other = listenerOn(Number(address.split(":").at(-1)))
  const folder = other && runningFolders().find((one) => serverOf(one)?.pid === other.pid)
  const server = folder === undefined ? "" : `, the server of the data folder ${folder}`
  const user = other ? ` by ${other.name} (process ${other.pid})${server}` : ""
  const message = `${address} is already in use${user}.`
  return new Failure(exits.unreachable, "port_taken", message, {
    details: { address, asked_by },
    hint: `stop that program, or choose another port with ${asked_by} (0 takes a free port)`,
  })
}

/** The setting that names the address. */
function settingOf(address: string, where: Settings): string {
  const port = address.slice(address.lastIndexOf(":"))
  const listens = (value: unknown) => typeof value === "string" && value.endsWith(port)
  const found = Object.entries(where).find(([key, value]) => /listen$/.test(key) && listens(value))
  return found?.[0] ?? "http.listen"
}

/** An address that this machine does not have, or a port that its user may not take. Exit 69. */
const cannotListen = (address: string, { message }: Error) =>
  new Failure(
    exits.unreachable,
    "cannot_listen",
    `The server cannot listen on ${address}: ${message}.`,
    {
      details: { address },
      hint: "choose an address of this machine; ports below 1024 need a privilege",
    },
  )

function addressIn(error: Error, otherwise: string): string {
  const { address, port } = error as { address?: unknown; port?: unknown }
  return typeof port === "number" ? `${String(address ?? "")}:${port}` : otherwise
}

const NOT_WRITABLE = "name a folder in which this user may write, or give them that right"

const HINTS: Partial<Record<string, string>> = {
  EROFS: NOT_WRITABLE,
  EACCES: NOT_WRITABLE,
  EPERM: NOT_WRITABLE,
  ENOSPC: "free some space on that disk, then run the command again",
  FolderInUse: "where that is `belfry up`, `belfry open` prints a link to it",
  ENOTDIR: "a part of this path is a file; name another folder",
}

const conflicts = ["OtherNodeRuns", "TargetInUse", "BackupRunning"]

const storageErrors = [
  "BackupFailed",
  "FolderInUse",
  "NoDatabase",
  "DamagedDatabase",
  "FolderInPlace",
  "SchemaTooNew",
  "MasterKeyError",
  "WrongMasterKey",
  "BlobsElsewhere",
  "FolderOfAnother",
  "SecretError",
  "NoRoomForRestore",
  "NoRoomForCheck",
  "SQLiteError",
  "UnusableFile",
]

const isStorage = ({ name }: Error, code: string) =>
  storageErrors.includes(name) ||
  /^(SQLITE_|ERR_POSTGRES|ENOSPC|EROFS|EACCES|EPERM|EIO|ENOTDIR|EEXIST|ENOENT|EFBIG)/.test(code)
