import { rmSync } from "node:fs"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { type AdminParts, administer, type Order } from "./admin"

/** What the operating system takes as the address of a socket, with room for its end. */
const MOST_BYTES = 100

/**
 * Takes orders of the command line on this machine while the server holds the database. Whoever may
 * enter the data folder may give them: that is the whole permission. Returns how to close it.
 */
export function openAdminSocket(path: string, parts: AdminParts): () => Promise<void> {
  if (Buffer.byteLength(path) > MOST_BYTES) {
    log.warn("local administration is not available, because the path of its socket is too long", {
      path,
    })
    return async () => {}
  }
  rmSync(path, { force: true }) // left by a process that was killed; a living one holds the lock
  const others = process.umask(0o177) // never open to anybody else, not even for a moment
  const server = Bun.serve({ unix: path, fetch: (request) => answer(parts, request) })
  process.umask(others)
  return async () => {
    await server.stop(true)
    rmSync(path, { force: true })
  }
}

async function answer(parts: AdminParts, request: Request): Promise<Response> {
  try {
    const order = (await request.json()) as Order
    log.info("local administration", { operation: order.operation })
    return Response.json({ data: await administer(parts, order) })
  } catch (error) {
    const known = error instanceof ApiError
    if (!known) log.error("local administration failed", { error })
    const { code, message, details, status } = known
      ? error
      : new ApiError("internal_error", "An internal error occurred. The log has the reason.")
    return Response.json({ error: { code, message, details } }, { status })
  }
}
