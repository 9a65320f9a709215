import { exits, Failure } from "../failure"
import { explained } from "./settings"

/** Why a server on this machine cannot start or go on, as a failure with its own exit code. */
export function startFailure(error: unknown, where: { listen: string; data_dir: string }): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error
  const code = "code" in error ? String(error.code) : ""
  if (code === "EADDRINUSE") return portTaken(addressIn(error, where.listen))
  if (isStorage(error, code)) {
    const details = { data_dir: where.data_dir }
    return new Failure(exits.storage, "storage", error.message, { details })
  }
  return explained(error)
}

/** A port somebody asked for by number, and somebody else holds. Exit 69, naming it. */
export function portTaken(address: string): Failure {
  return new Failure(exits.unreachable, "port_taken", `${address} is already in use.`, {
    details: { address },
    hint: "stop what listens there, or choose another with --port (0 takes a free one)",
  })
}

function addressIn(error: Error, otherwise: string): string {
  const { address, port } = error as { address?: unknown; port?: unknown }
  return typeof port === "number" ? `${String(address ?? "")}:${port}` : otherwise
}

const storageErrors = [
  "FolderInUse",
  "SchemaTooNew",
  "MasterKeyError",
  "WrongMasterKey",
  "SecretError",
  "SQLiteError",
]

const isStorage = ({ name }: Error, code: string) =>
  storageErrors.includes(name) ||
  /^(SQLITE_|ERR_POSTGRES|ENOSPC|EROFS|EACCES|EPERM|EIO|ENOTDIR|ENOENT|EFBIG)/.test(code)
