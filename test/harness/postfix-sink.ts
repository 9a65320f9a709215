import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { locate } from "./peers"
import { freePort } from "./ports"
import { NEVER_MS } from "./waits"

/** Postfix's smtp-sink in a scratch folder, with a file for each mail that it took. */
export async function startSmtpSink(...options: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "belfry-sink-"))
  chmodSync(folder, 0o777) // its own user writes there
  const port = await freePort()
  const user = userInfo().uid === 0 ? ["-u", "nobody"] : []
  const words = [...user, ...options, "-d", "mail.", `127.0.0.1:${port}`, "100"]
  const child = Bun.spawn({
    cmd: [locate("smtp-sink") ?? "", ...words],
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  })
  const deadline = performance.now() + NEVER_MS
  while (!(await answers(port))) {
    if (performance.now() > deadline) throw new Error("smtp-sink does not listen")
    await Bun.sleep(50)
  }
  return {
    port,
    /** Its own lines first, then the mail with LF line ends, then an empty line. */
    files: () =>
      readdirSync(folder).map((name) => readFileSync(join(folder, name)).toString("latin1")),
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })
}
