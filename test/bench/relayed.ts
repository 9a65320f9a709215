import type { Database } from "bun:sqlite"
import { requireEqual } from "./bench"
import { oneLetter } from "./mail"
import { nanosecondsOf } from "./processor"
import { scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"
import { addSigningDomain } from "./signing-domain"
import type { Sink } from "./sink"
import { post } from "./wrk"

/** As many as the load of the peer has, and as there are deliveries at once. */
const CONNECTIONS = 20

/** Messages that may be sent and not recorded when the server is killed. */
const IN_FLIGHT = 4 * CONNECTIONS

/** Times the length of a measurement: so long the runtime goes on compiling, on cores that we need. */
const WARM_UP = 3

export const FROM = "shop@bench.test"

const DOMAIN = "bench.test"

/** Settings under which a server delivers to the sink. */
export const relayTo = (port: number): Record<string, string> => ({
  BELFRY_DELIVERY_PROVIDER: "smtp",
  BELFRY_DELIVERY_CONCURRENCY: String(CONNECTIONS),
  BELFRY_PROVIDERS_SMTP_HOST: "127.0.0.1",
  BELFRY_PROVIDERS_SMTP_PORT: String(port),
  BELFRY_PROVIDERS_SMTP_TLS: "none",
})

export interface Relayed {
  /** Messages, from the first one offered to the last one that the sink has. */
  per_second: number
  accepted_per_second: number
  /** Processor time of all threads for a message, in microseconds. */
  cost_us: number
}

function signedIn(database: Database): number {
  let count = 0
  for (const { raw } of database.query<Kept, []>("SELECT raw FROM message_raws").iterate()) {
    if (Buffer.from(raw).includes("DKIM-Signature: ")) count += 1
  }
  return count
}

interface Kept {
  raw: Uint8Array
}

interface Load {
  bytes: number
  /** The sender is a verified domain with an RSA-2048 key, instead of one that the operator vouches for. */
  signed: boolean
}

/** A server that delivers to the sink. Leaving its scope kills it. */
export interface RelayingServer extends AsyncDisposable {
  /** Posts for `seconds` as fast as it is answered, and waits until the sink has all of it. */
  burst(seconds: number): Promise<Relayed>
  /** Kills it, and counts its rows. */
  end(): Promise<void>
}

/** Resolves when the server is warm: after three times `seconds` of the same load. */
export async function relayingServer(
  sink: Sink,
  seconds: number,
  { bytes, signed }: Load,
): Promise<RelayingServer> {
  const scratch = scratchFolder()
  const key = await initialise(scratch.path)
  const vouched: Record<string, string> = signed ? {} : { BELFRY_SENDING_DOMAINS: DOMAIN }
  if (signed) addSigningDomain(scratch.path, DOMAIN)
  const server = await serve(scratch.path, key, { ...relayTo(sink.port), ...vouched })
  const body = oneLetter(scratch.path, FROM, bytes)
  const { url, headers, pid } = server
  const load = { url: `${url}/v1/emails`, headers, body, connections: CONNECTIONS }
  let messages = 0
  const burst = async (seconds: number): Promise<Relayed> => {
    const before = sink.messages()
    const spent = nanosecondsOf(pid)
    const begun = performance.now()
    const { answered, per_second: accepted_per_second } = await post({ ...load, seconds })
    // Not when the load generator ends: it looks for stragglers a second longer.
    const taken = ((await sink.received(before + answered)) - begun) / 1000
    const cost_us = (nanosecondsOf(pid) - spent) / 1000 / answered
    requireEqual("messages at the sink", answered, sink.messages() - before)
    messages += answered
    return { per_second: answered / taken, accepted_per_second, cost_us }
  }
  await burst(WARM_UP * seconds)
  return {
    burst,
    async end() {
      await server.kill()
      using database = databaseOf(scratch.path)
      requireEqual("messages stored", messages, countRows(database, "messages"))
      // A recipe is kept with the outcome; the kill may have come before the last ones were written.
      const told = countRows(database, "messages WHERE status = 'sent'")
      requireEqual("outcomes that are missing", 0, Math.max(0, messages - told - IN_FLIGHT))
      requireEqual("messages signed", signed ? told : 0, signedIn(database))
    },
    async [Symbol.asyncDispose]() {
      await server.kill()
      scratch[Symbol.dispose]()
    },
  }
}

/** One burst of a server of its own. */
export async function relayed(sink: Sink, { seconds, ...load }: Load & { seconds: number }) {
  await using server = await relayingServer(sink, seconds, load)
  const found = await server.burst(seconds)
  await server.end()
  return found
}
