import { connect, createServer, type Socket } from "node:net"

export interface Relay extends AsyncDisposable {
  port: number
  /** Where the next connections go. */
  to: number
  /** How many connections there have been. */
  connections: number
  /** Breaks every connection that is open, without a goodbye. Returns how many. */
  cut(): number
}

/** Passes TCP connections on to a port of this machine, as a network would that may break. */
export async function startRelay(to: number): Promise<Relay> {
  const open = new Set<Socket>()
  const relay = { connections: 0, to }
  const server = createServer((near) => {
    relay.connections += 1
    const far = connect(relay.to, "127.0.0.1")
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.pipe(other)
      one.on("error", () => other.destroy())
      one.on("close", () => {
        open.delete(near)
        other.destroy()
      })
    }
    open.add(near)
  })
  const port = await listening(server)
  return Object.assign(relay, {
    port,
    cut() {
      const all = [...open]
      for (const socket of all) socket.destroy()
      return all.length
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

export interface Proxy extends AsyncDisposable {
  url: string
  /** First lines of what it was asked: `CONNECT belfry.test:80 HTTP/1.1`. */
  asked: string[]
}

/** An HTTP proxy: tunnels by CONNECT, and passes plain requests on. Every name is this machine. */
export async function startProxy({ tunnels = true } = {}): Promise<Proxy> {
  const asked: string[] = []
  const open = new Set<Socket>()
  const server = createServer((near) => {
    open.add(near)
    near.on("error", () => near.destroy())
    near.once("data", (head: Buffer) => {
      const [line = ""] = head.toString("latin1").split("\r\n")
      asked.push(line)
      const [method, target = ""] = line.split(" ")
      const is_tunnel = method === "CONNECT"
      if (is_tunnel && !tunnels) return void near.end("HTTP/1.1 405 Method Not Allowed\r\n\r\n")
      const { port } = new URL(is_tunnel ? `http://${target}` : target)
      const far = connect(Number(port), "127.0.0.1", () => {
        if (is_tunnel) near.write("HTTP/1.1 200 OK\r\n\r\n")
        else far.write(head)
        near.pipe(far)
        far.pipe(near)
      })
      far.on("error", () => near.destroy())
    })
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function listening(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve(typeof address === "object" && address ? address.port : 0)
    })
  })
}
