import { type AddressInfo, connect, createServer, type Socket } from "node:net"

/** A way to a server on the loopback that may break. Its port stays, also where the server gets another one. */
export interface CuttingProxy extends Disposable {
  port: number
  /** Where the server is now. 0: the network is off, and what is open breaks. */
  leadTo(port: number): void
}

/**
 * Carries connections to a server. `budget` says after how many bytes from the server each breaks, both ways and without a
 * word; undefined: never.
 */
export async function cuttingProxy(
  budget: () => number | undefined = () => undefined,
): Promise<CuttingProxy> {
  let target = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    if (target === 0) return void client.destroy()
    const upstream = connect(target, "127.0.0.1")
    const cut = () => {
      for (const one of [client, upstream]) {
        one.destroy()
        open.delete(one)
      }
    }
    let left = budget()
    for (const one of [client, upstream]) {
      open.add(one)
      one.on("error", cut)
      one.on("close", cut)
    }
    client.pipe(upstream)
    upstream.on("data", (bytes: Buffer) => {
      if (left === undefined || bytes.length <= left) {
        if (left !== undefined) left -= bytes.length
        if (!client.write(bytes)) upstream.pause()
        return
      }
      client.write(bytes.subarray(0, left), () => client.resetAndDestroy())
      upstream.destroy()
      left = 0
    })
    client.on("drain", () => upstream.resume())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(port) {
      target = port
      if (port === 0) for (const one of open) one.destroy()
    },
    [Symbol.dispose]() {
      for (const one of open) one.destroy()
      server.close()
    },
  }
}
