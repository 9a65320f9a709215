import { ConnectionPool } from "../smtp/pool"
import type { SmtpServer, Timeouts } from "../smtp/session"
import { Remembered } from "./remembered"

/**
 * Shorter than RFC 5321, 4.5.3.2 asks for, which would let a host hold a place for an hour. What
 * times out is tried again.
 */
const TIMEOUTS: Timeouts = {
  connect: 15_000,
  greeting: 30_000,
  reply: 30_000,
  accepted: 120_000,
}

/** Many domains are seen once an hour: their connections must not pile up. */
const IDLE_MS = 10_000
const TURN_MS = 60_000

/** Pools beyond this are closed, the one used longest ago first, where nothing runs in them. */
const MOST_POOLS = 2_000

/** For how long a host whose TLS does not work is spoken to in the open at once. */
const PLAIN_MS = 600_000

export interface HostOptions {
  port: number
  ehlo_name?: string | undefined
  /** PEM of the authority to trust instead of the system's, where certificates count. */
  ca?: string | undefined
  timeouts?: Partial<Timeouts> | undefined
  max_connections: number
}

/** Of one host: `proven` demands a certificate that is good for its name (MTA-STS). */
export type Safety = "proven" | "opportunistic" | "none"

/** Warm connections to many mail hosts, kept apart by address, name and what TLS has to be. */
export class Hosts {
  readonly #options: HostOptions
  readonly #pools = new Map<string, ConnectionPool>()
  #closed = false
  readonly #plain = new Remembered<true>(PLAIN_MS, MOST_POOLS)

  constructor(options: HostOptions) {
    this.#options = options
  }

  pool(name: string, address: string, safety: Safety): ConnectionPool {
    const key = `${safety} ${address} ${name}`
    const pool = this.#pools.get(key) ?? this.#open(name, address, safety)
    this.#pools.delete(key)
    this.#pools.set(key, pool) // the last used is the last to go
    if (this.#pools.size > MOST_POOLS) this.#closeOldest()
    return pool
  }

  /** Its TLS failed: for some time it gets mail without, unless its policy demands TLS. */
  speaksPlainly(address: string): void {
    void this.#plain.get(address, async () => true)
  }

  isPlain(address: string): boolean {
    return this.#plain.has(address)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  #open(name: string, address: string, safety: Safety): ConnectionPool {
    const { port, ehlo_name, ca, timeouts, max_connections } = this.#options
    const server: SmtpServer = {
      host: address,
      servername: name,
      port,
      ehlo_name,
      tls: safety === "proven" ? "starttls" : safety,
      timeouts: { ...TIMEOUTS, ...timeouts },
      ...(safety === "proven" && { ca }),
    }
    const pool = new ConnectionPool(server, { max_connections, idle: IDLE_MS, queue: TURN_MS })
    if (this.#closed) void pool.close()
    return pool
  }

  #closeOldest() {
    for (const [key, pool] of this.#pools) {
      if (pool.isBusy) continue
      this.#pools.delete(key)
      return void pool.close()
    }
  }
}
