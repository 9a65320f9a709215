import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { Packet } from "dns2"

type Rows = Partial<Packet["answers"][number]>[]

/** What the zone says to one question: records, an error's name, or silence. */
export type Say =
  | Rows
  | { recursed: Rows }
  | "NXDOMAIN"
  | "SERVFAIL"
  | "silence"
  | { denied_by: string; code: "NXDOMAIN" | "NOERROR" }
  | { referral: string; to: string | string[] }
export type Zone = (name: string, kind: string, transport: "udp" | "tcp") => Say

export interface NameServer {
  /** `127.0.0.1:port`, as the settings take it. */
  address: string
  /** How many questions came. */
  asked(): number
  close(): void
}

const UDP_BYTES = 512

/** A name server on both transports of one free port; long answers are truncated over UDP. */
export async function nameServer(zone: Zone): Promise<NameServer> {
  const udp = createSocket("udp4")
  const open = new Set<Socket>()
  let asked = 0
  const answer = (query: Buffer, transport: "udp" | "tcp") => {
    asked += 1
    return answerTo(Packet.parse(query), transport, zone)
  }
  udp.on("message", (query, from) => {
    const bytes = answer(query, "udp")
    if (bytes) udp.send(bytes, from.port, from.address)
  })
  const tcp = createServer((socket) => {
    open.add(socket)
    socket.on("error", () => undefined)
    socket.on("data", (chunk: Buffer) => {
      const bytes = answer(chunk.subarray(2), "tcp")
      if (bytes)
        socket.write(Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length]), bytes]))
    })
  })
  const port = await sharedPort(tcp, udp)
  return {
    address: `127.0.0.1:${port}`,
    asked: () => asked,
    close() {
      udp.close()
      tcp.close()
      for (const socket of open) socket.destroy()
    },
  }
}

const TRIES = 50

/** A port that is free for both: one that TCP got may be taken on UDP, so then another is tried. */
async function sharedPort(tcp: Server, udp: UdpSocket): Promise<number> {
  for (let tries = 1; ; tries++) {
    await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve))
    const { port } = tcp.address() as AddressInfo
    try {
      await bind(udp, port)
      return port
    } catch (error) {
      if (tries === TRIES) throw error
      await new Promise((resolve) => tcp.close(resolve))
    }
  }
}

function bind(udp: UdpSocket, port: number) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  udp.once("error", reject)
  udp.bind(port, "127.0.0.1", () => {
    udp.off("error", reject)
    resolve()
  })
  return promise
}

/** The authority of a denial (RFC 2308). */
const soaOf = (name: string) => ({
  name,
  type: Packet.TYPE.SOA,
  class: Packet.CLASS.IN,
  ttl: 60,
  primary: "ns.test",
  admin: "hostmaster.test",
  serial: 1,
  refresh: 60,
  retry: 60,
  expiration: 60,
  minimum: 60,
})

function answerTo(query: Packet, transport: "udp" | "tcp", zone: Zone): Buffer | undefined {
  const [question] = query.questions
  if (!question) return undefined
  const kind = Packet.typeName(question.type)
  const said = zone(question.name, kind, transport)
  if (said === "silence") return undefined
  const reply = Packet.createResponseFromRequest(query)
  if (typeof said === "string") reply.header.rcode = Packet.RCODE[said]
  else if ("denied_by" in said) {
    reply.header.rcode = Packet.RCODE[said.code]
    reply.authorities.push(new Packet.Resource(soaOf(said.denied_by)))
  } else if ("referral" in said) {
    for (const ns of [said.to].flat()) {
      const row = { name: said.referral, ns, type: Packet.TYPE.NS, class: 1, ttl: 60 }
      reply.authorities.push(new Packet.Resource(row))
    }
  } else {
    reply.header.ra = "recursed" in said ? 1 : 0
    for (const record of "recursed" in said ? said.recursed : said) {
      const own = { name: question.name, type: question.type, class: Packet.CLASS.IN, ttl: 60 }
      reply.answers.push(new Packet.Resource({ ...own, ...record }))
    }
  }
  const bytes = reply.toBuffer()
  if (transport === "tcp" || bytes.length <= UDP_BYTES) return bytes
  const short = Packet.createResponseFromRequest(query)
  short.header.tc = 1
  return short.toBuffer()
}
