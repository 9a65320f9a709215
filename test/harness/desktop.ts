import { join } from "node:path"
import { readLines } from "./lines"
import { root } from "./migrations"
import { DEBIAN_PYTHON } from "./peers"

/** What a program asks the desktop to show. */
export interface DesktopNotification {
  id: number
  title: string
  body: string
  /** By name, each with its label behind it. */
  actions: string[]
}

/** A desktop without a screen, on a session bus of its own, which shows notifications of programs. */
export async function startDesktop() {
  const child = Bun.spawn({
    cmd: [DEBIAN_PYTHON, join(root, "test/harness/desktop.py")],
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  const tell = (line: string) => {
    child.stdin.write(`${line}\n`)
    return child.stdin.flush()
  }
  return {
    /** For programs that shall show their notifications here. */
    env: { DBUS_SESSION_BUS_ADDRESS: await lines.first(() => true) },
    async shown(title: string): Promise<DesktopNotification> {
      const line = await lines.first((text) => text.startsWith("{") && titleOf(text) === title)
      return JSON.parse(line)
    },
    click: ({ id }: DesktopNotification, action = "default") => tell(`click ${id} ${action}`),
    close: ({ id }: DesktopNotification) => tell(`close ${id}`),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await child.exited
    },
  }
}

const titleOf = (line: string) => (JSON.parse(line) as DesktopNotification).title
