import { connect, type Socket } from "node:net"

/** What slow clients say after the greeting, before each goes on with a byte a second. */
const HABITS = {
  inbound: [
    "",
    "EHLO slow.test\r\n",
    "EHLO slow.test\r\nMAIL FROM:<>\r\nRCPT TO:<postmaster@mx.belfry.test>\r\nDATA\r\nSubject: slow\r\n",
    "EHLO slow.test\r\nSTARTTLS\r\n",
  ],
  submission: [
    "",
    "EHLO slow.test\r\n",
    "EHLO slow.test\r\nSTARTTLS\r\n",
    "EHLO slow.test\r\nAUTH",
  ],
}

/** Clients that never end: one that was served, and is sent away as too slow, comes again. Leaving the scope closes them. */
export interface SlowClients extends Disposable {
  /** How many of them the server holds, or greets again. */
  open(): number
}

interface SlowOptions {
  port: number
  kind: keyof typeof HABITS
  count: number
  /** The address of each, on the loopback. */
  from: (number: number) => string
}

const AT_ONCE = 100
const DRIP_MS = 1000
/** A client that has begun TLS would spoil its handshake, and one that is silent stays silent. */
const DRIPS = /DATA|AUTH|EHLO slow.test\r\n$/

/** Resolves when each was greeted, or sent away. */
export async function slowClients({ port, kind, count, from }: SlowOptions): Promise<SlowClients> {
  const sockets = new Set<Socket>()
  const dripping = new Set<Socket>()
  const words = HABITS[kind]
  let is_over = false
  const open = (number: number) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const socket = connect({ host: "127.0.0.1", port, localAddress: from(number) })
    const habit = words[number % words.length] ?? ""
    let is_served = false
    sockets.add(socket)
    socket.once("data", (greeting: Buffer) => {
      is_served = greeting.toString().startsWith("220 ")
      if (is_served) socket.write(habit)
      if (is_served && DRIPS.test(habit)) dripping.add(socket)
      resolve()
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      dripping.delete(socket)
      if (is_served && !is_over) void open(number)
      resolve()
    })
    return promise
  }
  for (let first = 0; first < count; first += AT_ONCE) {
    const size = Math.min(AT_ONCE, count - first)
    await Promise.all(Array.from({ length: size }, (_, index) => open(first + index)))
  }
  const drip = setInterval(() => {
    for (const socket of dripping) if (!socket.destroyed) socket.write("x")
  }, DRIP_MS)
  return {
    open: () => sockets.size,
    [Symbol.dispose]() {
      is_over = true
      clearInterval(drip)
      for (const socket of [...sockets]) socket.destroy()
    },
  }
}

/** So many clients an address, in the network of this number. */
export const spread =
  (network: number, each: number) =>
  (number: number): string => {
    const host = Math.floor(number / each)
    return `127.${network}.${host >> 8}.${(host & 255) + 1}`
  }
