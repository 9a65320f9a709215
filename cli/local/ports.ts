import { createServer } from "node:net"
import { hostAndPort, type Loaded } from "../../src/core/config"
import { usage } from "../failure"
import { portTaken } from "./trouble"

export const LOOPBACK = "127.0.0.1"

/** Whether nobody listens there now. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(false))
    probe.listen({ host: LOOPBACK, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** `0` to `65535`, or exit 2. */
export function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535))
    throw usage(`--port: "${text}" is not a port`, "write 0 to 65535; 0 takes a free port")
  return port
}

/** Where the embedded mailbox listens when nobody says where: the usual port, else a free one. */
export async function settledMailbox(base: Loaded): Promise<string | undefined> {
  const { values } = base
  if (!values["mailbox.enabled"]) return undefined
  if (base.explain("mailbox.listen").source !== "default") return undefined
  const { port } = hostAndPort(values["mailbox.listen"])
  return (await settledPort(port, false)) === port ? undefined : `${LOOPBACK}:0`
}

/** A port by request must be free (exit 69); a usual one gives way to any free one. */
export async function settledPort(port: number, is_request: boolean): Promise<number> {
  if (port === 0 || (await isFree(port))) return port
  if (is_request) throw portTaken(`${LOOPBACK}:${port}`)
  return 0
}
