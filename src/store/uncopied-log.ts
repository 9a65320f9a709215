import { Database } from "bun:sqlite"

/** By the path of the SQLite file: the connections that would copy its log as the process ends. */
const connections = new Map<string, Set<Database>>()

/**
 * The write-ahead log of this file stays as it is when the process ends, however it ends. Bun and SQLite
 * would copy it into the file otherwise: Bun for each connection, closed or not, and SQLite with the last one.
 */
export function leaveLog(path: string, connection: Database): void {
  if (connections.size === 0) process.on("exit", leaveAll)
  const known = connections.get(path) ?? new Set()
  connections.set(path, known.add(connection))
}

function leaveAll(): void {
  for (const [path, known] of connections) {
    for (const connection of known) tryTo(() => read(connection))
    // It ends last, and what is read-only cannot copy: so nobody is the last that could.
    tryTo(() => read(new Database(path, { readonly: true, strict: true })))
  }
}

/** A connection copies nothing within a transaction. */
function read(connection: Database): void {
  if (connection.inTransaction) connection.run("ROLLBACK")
  connection.run("BEGIN")
  connection.query("SELECT count(*) FROM sqlite_schema").get()
}

/** The file may be gone or damaged. Then there is nothing to leave. */
function tryTo(act: () => void): void {
  try {
    act()
  } catch {}
}
