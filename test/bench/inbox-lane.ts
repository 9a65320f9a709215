/**
 * `bun inbox-lane.ts KIND ADDRESS FILE`: sockets of people, one for each line of the file, which is a token (`ours`) or a
 * name (`socket.io`, spoken by hand, so that both clients cost the same). Prints "open"; then for each line of input, a
 * number, the moment at which so many more messages had come to each of them.
 */
import { readFileSync } from "node:fs"
import { argv } from "node:process"

const [kind, address = "", file = ""] = argv.slice(2)
const lines = readFileSync(file, "utf8").trim().split("\n")
const AT_ONCE = 50

let came = 0
let at = 0
let wanted = Number.POSITIVE_INFINITY
let arrived = Promise.withResolvers<void>()

function count() {
  came += 1
  at = performance.timeOrigin + performance.now()
  if (came >= wanted) arrived.resolve()
}

let people = 0

/** Each comes from an address of its own, as a proxy says. */
function ours(token: string, ready: () => void): WebSocket {
  people += 1
  const headers = { "x-forwarded-for": `10.0.${people >> 8}.${people & 255}` }
  const protocols = ["svc.inbox.v1", `bearer.${token}`]
  const options = { protocols, headers } as unknown as string[]
  const socket = new WebSocket(`${address}/v1/subscriber-inbox/ws`, options)
  socket.onmessage = ({ data }) => {
    const text = data as string
    if (text.startsWith('{"type":"message.created"')) count()
    else if (text.startsWith('{"type":"ready"')) ready()
    else if (text === '{"type":"ping"}') socket.send('{"type":"pong"}')
  }
  return socket
}

/** Engine.IO 4: `0` opens, `2` is a ping, `40` joins, `42` is an event. */
function theirs(person: string, ready: () => void): WebSocket {
  const query = `EIO=4&transport=websocket&person=${person}`
  const socket = new WebSocket(`${address}/socket.io/?${query}`)
  socket.onmessage = ({ data }) => {
    const text = data as string
    if (text.startsWith('42["message.created"')) count()
    else if (text.startsWith("0")) socket.send("40")
    else if (text.startsWith("40")) ready()
    else if (text === "2") socket.send("3")
  }
  return socket
}

const open = (line: string) =>
  new Promise<void>((resolve, reject) => {
    const socket = kind === "ours" ? ours(line, resolve) : theirs(line, resolve)
    socket.onerror = () => reject(new Error("a socket could not be opened"))
    socket.onclose = ({ code, reason }) => {
      console.log(`broken: a socket was closed with ${code} ${reason}`)
      process.exit(1)
    }
  })

for (let from = 0; from < lines.length; from += AT_ONCE) {
  await Promise.all(lines.slice(from, from + AT_ONCE).map(open))
}
console.log("open")
for await (const line of console) {
  arrived = Promise.withResolvers()
  wanted = came + Number(line) * lines.length
  console.log("ready")
  await arrived.promise
  console.log(String(at))
}
process.exit(0)
