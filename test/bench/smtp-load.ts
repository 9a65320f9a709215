/**
 * The load of the SMTP benchmarks, a process of its own: sessions that stay, each of which offers mail
 * after mail. A line of JSON on stdin says how. It prints `ready` when all sessions are open. For each
 * number of seconds that then comes on a line, it prints what was taken.
 */
import { connect, type Socket } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { textOf } from "./mail"

export interface SmtpLoad {
  port: number
  sessions: number
  from: string
  to: string
  /** Of the text of each mail. */
  bytes: number
  /** MAIL, RCPT and DATA in one packet, instead of one after the other as most libraries do. */
  pipelined: boolean
  /** Begins TLS by STARTTLS. */
  tls: boolean
  /** Logs in with this password, where it is given. */
  password: string | null
  /** What every mail has in its header, with line ends. A Message-ID of its own follows. */
  header: string
}

export interface SmtpLoadResult {
  taken: number
  seconds: number
  p50_ms: number
  p99_ms: number
}

const GREETING_MS = 20_000

/** One session: replies are read one by one, in their order. */
class Session {
  #socket: Socket | TLSSocket
  #text = ""
  readonly #waiting: ((reply: string) => void)[] = []
  readonly #fail: (error: Error) => void

  constructor(port: number, fail: (error: Error) => void) {
    this.#fail = fail
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true })
    this.#listen()
  }

  #listen() {
    const socket = this.#socket
    socket.setEncoding("latin1")
    socket.on("data", (chunk: string) => socket === this.#socket && this.#read(chunk))
    socket.on("error", (error) => socket === this.#socket && this.#fail(error))
    socket.on("close", () => {
      if (socket === this.#socket) this.#fail(new Error("the server closed a session"))
    })
  }

  #read(chunk: string) {
    this.#text += chunk
    for (;;) {
      const end = endOfReply(this.#text)
      if (end === -1) return
      const reply = this.#text.slice(0, end)
      this.#text = this.#text.slice(end)
      this.#waiting.shift()?.(reply)
    }
  }

  reply(code: number): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#waiting.push((reply) => {
      if (!reply.startsWith(String(code))) this.#fail(new Error(`instead of ${code}: ${reply}`))
      resolve(reply)
    })
    return promise
  }

  say(text: string) {
    this.#socket.write(text, "latin1")
  }

  ask(text: string, code: number): Promise<string> {
    const answer = this.reply(code)
    this.say(`${text}\r\n`)
    return answer
  }

  async secure() {
    await this.ask("STARTTLS", 220)
    const plain = this.#socket
    plain.removeAllListeners("data")
    const socket = connectTls({ socket: plain, rejectUnauthorized: false })
    this.#socket = socket
    await new Promise<void>((resolve) => socket.once("secureConnect", resolve))
    this.#listen()
  }
}

/** Where the first whole reply ends, or -1. */
function endOfReply(text: string): number {
  for (let from = 0; ; ) {
    const end = text.indexOf("\r\n", from)
    if (end === -1) return -1
    if (text[from + 3] !== "-") return end + 2
    from = end + 2
  }
}

async function open(load: SmtpLoad, fail: (error: Error) => void): Promise<Session> {
  const session = new Session(load.port, fail)
  await session.reply(220)
  await session.ask("EHLO load.bench.test", 250)
  if (load.tls) {
    await session.secure()
    await session.ask("EHLO load.bench.test", 250)
  }
  if (load.password !== null) {
    const login = Buffer.from(`\0svc\0${load.password}`).toString("base64")
    await session.ask(`AUTH PLAIN ${login}`, 235)
  }
  return session
}

/** Offers one mail, and resolves when it was taken. */
async function offer(session: Session, { from, to, pipelined }: SmtpLoad, mail: string) {
  const commands = [`MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, "DATA"]
  const codes = [250, 250, 354]
  if (pipelined) {
    const replies = codes.map((code) => session.reply(code))
    session.say(commands.map((command) => `${command}\r\n`).join(""))
    await Promise.all(replies)
  } else {
    for (const [at, command] of commands.entries()) await session.ask(command, codes[at] ?? 0)
  }
  const taken = session.reply(250)
  session.say(mail)
  await taken
}

const run = crypto.randomUUID()
let number = 0

async function offerFor(seconds: number, sessions: Session[], load: SmtpLoad) {
  const text = `${textOf(load.bytes).trimEnd()}\r\n.\r\n`
  const waits: number[] = []
  const begun = performance.now()
  const ends_at = begun + seconds * 1000
  await Promise.all(
    sessions.map(async (session) => {
      while (performance.now() < ends_at) {
        const at = performance.now()
        const id = `Message-ID: <${run}.${++number}@load.bench.test>\r\n`
        await offer(session, load, `${load.header}${id}\r\n${text}`)
        waits.push(performance.now() - at)
      }
    }),
  )
  const sorted = waits.toSorted((a, b) => a - b)
  const part = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  const result: SmtpLoadResult = {
    taken: waits.length,
    seconds: (performance.now() - begun) / 1000,
    p50_ms: part(0.5),
    p99_ms: part(0.99),
  }
  return result
}

let sessions: Session[] | undefined
let load: SmtpLoad | undefined
for await (const line of console) {
  if (load && sessions) {
    console.log(JSON.stringify(await offerFor(Number(line), sessions, load)))
    continue
  }
  const given = JSON.parse(line) as SmtpLoad
  const fail = (error: Error) => {
    console.error(`the load failed: ${error.message}`)
    process.exit(1)
  }
  const late = setTimeout(() => fail(new Error("the sessions do not open")), GREETING_MS)
  const opening = Array.from({ length: given.sessions }, () => open(given, fail))
  sessions = await Promise.all(opening)
  load = given
  clearTimeout(late)
  console.log("ready")
}
process.exit(0)
