/**
 * `node ws.mjs CONFIG`: follows the inboxes of people by the package `ws`, and goes on where a line broke. Commands on
 * stdin, a line each: `cut` ends every third connection, `mark PERSON ID AS` marks over the socket, `report` prints what
 * each client knows as one line of JSON.
 */
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import WebSocket from "ws"

const PATH = "/v1/subscriber-inbox"
const { addresses, api, key, people, ttl_seconds } = JSON.parse(readFileSync(process.argv[2]))

const clients = people.map((person, at) => {
  return { person, at, last: 0, messages: {}, errors: [], tries: 0, resyncs: 0, ready: false, socket: null }
})

async function post(path, credential, body) {
  for (let server = 0; ; server++) {
    try {
      const answer = await fetch(`${api[server % api.length]}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      })
      if (answer.ok) return (await answer.json()).data
      if (answer.status < 500 && answer.status !== 429) throw new Error(await answer.text())
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
    }
    await pause()
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 200))

async function connect(client) {
  const { token } = await post(`${PATH}/token`, key, { subscriber_id: client.person, ttl_seconds })
  const way = (client.at + client.tries) % 3
  const address = addresses[client.tries++ % addresses.length]
  const query = way === 1 ? `?ticket=${(await post(`${PATH}/ticket`, token, {})).ticket}` : ""
  const protocols = ["svc.inbox.v1", ...(way === 2 ? [`bearer.${token}`] : [])]
  const socket = new WebSocket(`${address}${PATH}/ws${query}`, protocols)
  client.socket = socket
  const say = (frame) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame))
  socket.on("open", () => {
    if (way === 0) say({ type: "auth", token, after_seq: client.last })
    else say({ type: "resume", after_seq: client.last })
  })
  socket.on("message", (data) => hear(client, JSON.parse(data), say))
  socket.on("error", () => {})
  socket.on("close", async (code) => {
    client.ready = false
    if ([4400, 4403, 4429].includes(code)) client.errors.push(`closed ${code}`)
    await pause()
    connect(client)
  })
}

function hear(client, frame, say) {
  const { type, seq = frame.upto_seq } = frame
  if (type === "ready") client.ready = true
  if (type === "ping") say({ type: "pong" })
  if (type === "resync") client.errors.push("resync")
  if (seq === undefined) return
  if (seq !== client.last + 1) client.errors.push(`${type} ${seq} after ${client.last}`)
  client.last = seq
  if (frame.message) client.messages[frame.message.id] = frame.message
  else if (type === "message.deleted") delete client.messages[frame.id]
  else for (const one of Object.values(client.messages)) bulk(frame, one)
}

function bulk({ type, upto_seq, category, before, read_only }, message) {
  if (message.seq >= upto_seq || (category && message.category !== category)) return
  if ((before && message.created_at >= before) || (read_only && !message.read_at)) return
  const names = { "messages.read": "read_at", "messages.seen": "seen_at", "messages.archived": "archived_at" }
  const name = names[type]
  if (message[name]) return
  message[name] = "then"
  if (name === "read_at") message.seen_at ??= "then"
  message.seq = upto_seq
}

const known = ({ person, last, messages, errors }) => ({
  person,
  last,
  errors,
  messages: Object.values(messages).map((one) => {
    const { id, seq, title, seen_at, read_at, archived_at, snoozed_until } = one
    return [id, seq, title, !!seen_at, !!read_at, !!archived_at, snoozed_until]
  }),
})

for (const client of clients) connect(client)
for await (const line of createInterface({ input: process.stdin })) {
  const [command, person, id, as] = line.split(" ")
  if (command === "cut") for (const { at, socket } of clients) if (at % 3 === 0) socket?.terminate()
  if (command === "report") console.log(JSON.stringify(clients.map(known)))
  if (command !== "mark") continue
  const { socket, ready } = clients.find((client) => client.person === person) ?? {}
  if (ready && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "mark", id, as, ref: "m" }))
}
process.exit(0)
