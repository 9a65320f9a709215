import { existsSync, readFileSync } from "node:fs"

const TABLE = "/proc/net/tcp"
const ESTABLISHED = "01"
/** Where the system does not tell, the other program gets this long. */
const BLIND_MS = 500

/** Resolves when the program that listens on this port of the loopback has read all that was sent to it. */
export async function untilRead(port: number): Promise<void> {
  if (!existsSync(TABLE)) return Bun.sleep(BLIND_MS)
  while (unread(port) > 0) await Bun.sleep(5)
}

/** Bytes that the system keeps for the program, over all of its connections. */
function unread(port: number): number {
  const own = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  let bytes = 0
  for (const line of readFileSync(TABLE, "utf8").split("\n").slice(1)) {
    const [, local = "", , state, queues = ""] = line.trim().split(/\s+/)
    if (state !== ESTABLISHED || !local.endsWith(own)) continue
    bytes += Number.parseInt(queues.split(":")[1] ?? "0", 16)
  }
  return bytes
}
