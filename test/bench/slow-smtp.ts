import { countingRelay } from "../fakes/counting-relay"
import { type MailPort, mailSettings, offer, openClient, rawMail } from "../faults/mail-clients"
import { slowClients, spread } from "../faults/slow-clients"
import { type Belfry, startBelfry } from "../harness/binary"
import { relaySettings } from "../scenarios/serve"
import { atMost, type Bench, ratioOf, series } from "./bench"

const SLOW_OF_A_PORT = 1000
const GOOD_OF_A_PORT = 4
const PORTS: MailPort[] = ["submission", "inbound"]

let mails = 0

/** Mail that came in is read by a job: the next measurement waits for those of the one before. */
async function allRead(server: Belfry) {
  for (let before = -1; ; ) {
    const response = await server.request("/v1/inbound-emails?per_page=1")
    const { total } = ((await response.json()) as { meta: { total: number } }).meta
    if (total === before) return
    before = total
    await Bun.sleep(500)
  }
}

/** The slowest of a hundred: from MAIL to the 250, in milliseconds. */
async function p99(server: Belfry, port: MailPort, seconds: number): Promise<number> {
  const ends_at = performance.now() + seconds * 1000
  const took: number[] = []
  const client = async () => {
    using it = await openClient(server, port)
    while (performance.now() < ends_at) {
      const began_at = performance.now()
      const reply = await offer(it, port, rawMail(port, `slow-${mails++}`, 2000))
      if (!reply.startsWith("2.0.0")) throw new Error(reply)
      took.push(performance.now() - began_at)
      await Bun.sleep(10) // latency is asked for, not throughput
    }
  }
  await Promise.all(Array.from({ length: GOOD_OF_A_PORT }, client))
  took.sort((one, other) => one - other)
  return took[Math.floor(took.length * 0.99)] ?? Number.NaN
}

export const slowSmtp: Bench = {
  name: "slow-smtp",
  title: `good mail clients beside ${2 * SLOW_OF_A_PORT} slow ones`,

  async run({ rounds, seconds }) {
    const rows = PORTS.map((port) => ({
      port,
      alone: series(`${port}, p99 of a mail, no slow clients`, "ms"),
      beside: series(`${port}, p99 of a mail, beside slow clients`, "ms"),
    }))
    for (let round = 0; round < rounds; round++) {
      using relay = countingRelay()
      const limits = {
        BELFRY_SMTP_INBOUND_MAX_CONNECTIONS: "3000",
        BELFRY_SMTP_SUBMISSION_MAX_CONNECTIONS: "3000",
      }
      const env = relaySettings(relay.port, { ...mailSettings, ...limits })
      await using server = await startBelfry({ env })
      for (const [at, { port: kind, alone, beside }] of rows.entries()) {
        await allRead(server)
        alone.values.push(await p99(server, kind, seconds))
        await allRead(server)
        const place = { kind, port: server.smtp[kind] ?? 0, count: SLOW_OF_A_PORT }
        using slow = await slowClients({ ...place, from: spread(20 + at, 10) })
        using more = await slowClients({ ...place, from: spread(40 + at, 10) })
        beside.values.push(await p99(server, kind, seconds))
        const open = slow.open() + more.open()
        if (open < SLOW_OF_A_PORT) throw new Error(`only ${open} slow clients were open`)
      }
    }
    return {
      series: rows.flatMap(({ alone, beside }) => [alone, beside]),
      verdicts: rows.map(({ port, alone, beside }) =>
        atMost(`${port}, beside to alone`, ratioOf(beside, alone), 2, "×"),
      ),
      notes: [
        `${GOOD_OF_A_PORT} clients a port, each with a mail of 2 KB every 10 ms on one connection. The slow clients say nothing, stop in the handshake, or drip a byte a second in a command or a message. Clients, slow clients and relay are one process beside the server.`,
      ],
    }
  },
}
