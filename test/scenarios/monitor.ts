import { connect, createServer, type Socket } from "node:net"
import { type Belfry, binary } from "../harness/binary"
import { openScreen, type Screen } from "../harness/screen"

export interface Size {
  columns: number
  lines: number
}

export const SMALL: Size = { columns: 80, lines: 24 }
export const LARGE: Size = { columns: 160, lines: 48 }

/** `belfry tui` on a terminal of that size, looking at a server. */
export async function openMonitor(
  server: Pick<Belfry, "home" | "url" | "api_key">,
  size: Size,
  env: Record<string, string> = {},
): Promise<Screen> {
  const { home, url, api_key } = server
  const own = { HOME: home, BELFRY_URL: url, BELFRY_API_KEY: api_key }
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  // Behind `env`, since TERM is tmux's own to set.
  return await openScreen(["env", ...words, binary, "tui"], { ...size, env: own })
}

/** Sends so many messages at once, and resolves when they are accepted. */
export async function sendMany(server: Belfry, count: number, subject: string): Promise<void> {
  for (let from = 0; from < count; from += 100) {
    const size = Math.min(100, count - from)
    const messages = Array.from({ length: size }, (_, n) => ({
      to: `u${from + n}@mailbox.test`,
      from: "me@mailbox.test",
      subject: `${subject} ${from + n}`,
      text: "hello",
    }))
    const body = JSON.stringify({ messages })
    const response = await server.request("/v1/emails/batch", { method: "POST", body })
    if (!response.ok) throw new Error(await response.text())
  }
}

/** A line to a server that can be cut and mended. */
export interface Line extends AsyncDisposable {
  url: string
  cut(): void
  mend(): void
}

export async function openLine(target: string): Promise<Line> {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let is_cut = false
  const server = createServer((near) => {
    if (is_cut) return void near.destroy()
    const far = connect(Number(port), hostname)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on("error", () => other.destroy())
      one.on("close", () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const own = typeof address === "object" && address ? address.port : 0
  const cut = () => {
    is_cut = true
    for (const socket of open) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${own}`,
    cut,
    mend() {
      is_cut = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
    },
  }
}
