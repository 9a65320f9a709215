import { gzipSync } from "node:zlib"
import type { Socket } from "bun"

/** What a receiver does to whoever sends it a request. */
export type Misdeed =
  | "endless body"
  | "endless chunks"
  | "endless headers"
  | "endless header line"
  | "endless interim answers"
  | "two lengths"
  | "length and chunks"
  | "one byte a second"
  | "slow headers"
  | "silence"
  | "gzip bomb"
  | "ten thousand headers"
  | "huge header line"
  | "redirect"
  | "refresh"
  | "early close"
  | "half an answer"
  | "bad chunk"
  | "bad gzip"
  | "garbage"

export interface HostileReceiver extends Disposable {
  url: string
  /** How many connections came. */
  connections(): number
  /** How many bytes it got rid of. */
  sent(): number
}

/** What is written at once, and what is then written for ever, as fast as it is read or slowly. */
interface Script {
  head: string | Buffer
  more?: string
  every_ms?: number
  close?: boolean
}

const OK = "HTTP/1.1 200 OK\r\n"
const PIECE = "x".repeat(65_536)
const FIELDS = "a: b\r\n".repeat(10_000)
const BOMB_BYTES = 100_000_000

/** Somewhere inside, where nobody may be sent: nothing listens there unless the test does. */
const INSIDE = "http://127.0.0.1:9/inside"

const scripts: Record<Misdeed, (target: string) => Script> = {
  "endless body": () => ({ head: `${OK}\r\n`, more: PIECE }),
  "endless chunks": () => ({
    head: `${OK}Transfer-Encoding: chunked\r\n\r\n`,
    more: `10000\r\n${PIECE}\r\n`,
  }),
  "endless headers": () => ({ head: OK, more: FIELDS }),
  "endless header line": () => ({ head: `${OK}X: `, more: PIECE }),
  "endless interim answers": () => ({
    head: "",
    more: "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000),
  }),
  "two lengths": () => ({
    head: `${OK}Content-Length: 5\r\nContent-Length: 500000000\r\n\r\n`,
    more: PIECE,
  }),
  "length and chunks": () => ({
    head: `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
    more: `10000\r\n${PIECE}\r\n`,
  }),
  "one byte a second": () => ({
    head: `${OK}Content-Length: 1000\r\n\r\n`,
    more: "x",
    every_ms: 1000,
  }),
  "slow headers": () => ({ head: OK, more: "X-A: b\r\n", every_ms: 50 }),
  silence: () => ({ head: "" }),
  "gzip bomb": () => ({ head: bomb() }),
  "ten thousand headers": () => ({ head: `${OK}${FIELDS}Content-Length: 2\r\n\r\nok` }),
  "huge header line": () => ({
    head: `${OK}X: ${"y".repeat(5_000_000)}\r\nContent-Length: 2\r\n\r\nok`,
  }),
  redirect: (target) => ({
    head: `HTTP/1.1 307 Away\r\nLocation: ${target}\r\nContent-Length: 0\r\n\r\n`,
  }),
  refresh: (target) => ({
    head: `${OK}Refresh: 0; url=${target}\r\nContent-Length: 2\r\n\r\nok`,
  }),
  "early close": () => ({ head: "", close: true }),
  "half an answer": () => ({ head: `${OK}Content-Length: 1000\r\n\r\nhalf`, close: true }),
  "bad chunk": () => ({
    head: `${OK}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nZZ\r\n`,
    close: true,
  }),
  "bad gzip": () => ({
    head: `${OK}Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf`,
    close: true,
  }),
  garbage: () => ({ head: "what is this?\r\n\r\n", close: true }),
}

export const misdeeds = Object.keys(scripts) as Misdeed[]

let packed: Buffer | undefined

function bomb(): Buffer {
  packed ??= gzipSync(Buffer.alloc(BOMB_BYTES))
  const head = `${OK}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), packed])
}

interface Session {
  unsent: Buffer
  began: boolean
  timer: Timer | undefined
}

/** Listens on the loopback and treats every connection as `misdeed` says; `target` is for redirects. */
export function hostileReceiver(misdeed: Misdeed, target = INSIDE): HostileReceiver {
  const script = scripts[misdeed](target)
  const head = Buffer.from(script.head)
  const more = script.more === undefined ? undefined : Buffer.from(script.more)
  let [connections, sent] = [0, 0]

  const push = (socket: Socket<Session>) => {
    const session = socket.data
    for (;;) {
      if (session.unsent.length === 0) {
        if (script.close) return void socket.end()
        if (!more || script.every_ms) return
        session.unsent = more
      }
      const written = socket.write(session.unsent)
      if (written <= 0) return
      sent += written
      session.unsent = session.unsent.subarray(written)
      if (session.unsent.length > 0) return // `drain` goes on
    }
  }
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        connections += 1
        socket.data = { unsent: head, began: false, timer: undefined }
      },
      data(socket) {
        if (socket.data.began) return
        socket.data.began = true
        push(socket)
        if (!more || !script.every_ms) return
        socket.data.timer = setInterval(() => {
          socket.data.unsent = Buffer.concat([socket.data.unsent, more])
          const written = socket.write(socket.data.unsent)
          if (written > 0) socket.data.unsent = socket.data.unsent.subarray(written)
        }, script.every_ms)
      },
      drain: push,
      close: (socket) => clearInterval(socket.data.timer),
      error: (socket) => clearInterval(socket.data.timer),
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/`,
    connections: () => connections,
    sent: () => sent,
    [Symbol.dispose]: () => server.stop(true),
  }
}
