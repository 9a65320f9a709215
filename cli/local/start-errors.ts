import type { Loaded, Settings } from "../../src/core/config"
import type { ArchiveError } from "../../src/operations/backup/archive-cursor"
import { exits, Failure } from "../lib/errors"
import { whereServersRun } from "./find-server"
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
  if (code === "EADDRINUSE") return portTaken(addressIn(error, where["http.listen"]))
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
    const hint = error.name === "NoDatabase" ? whereServersRun() : HINTS[code]
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

/** A port that was asked for, and that another program has. Exit 69. */
export function portTaken(address: string): Failure {
  return new Failure(exits.unreachable, "port_taken", `${address} is already in use.`, {
    details: { address },
    hint: "stop the program on that port, or choose another port (0 takes a free port)",
  })
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
