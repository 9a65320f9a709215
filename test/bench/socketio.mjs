/**
 * A peer on socket.io: `node socketio.mjs`. Prints its port. Each client joins the room of its subscriber; `POST /publish`
 * with a message as JSON writes one of its own to each of them, and keeps nothing.
 */
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { Server } from "socket.io"

const people = new Set()
const server = createServer((request, response) => {
  if (request.url !== "/publish") return
  let text = ""
  request.on("data", (chunk) => (text += chunk))
  request.on("end", () => {
    const content = JSON.parse(text)
    response.end()
    for (const person of people) {
      const at = new Date().toISOString()
      const message = { id: randomUUID(), subscriber_id: person, ...content, created_at: at }
      io.to(person).emit("message.created", { seq: 1, message })
      io.to(person).emit("counts", { unread: 1, unseen: 1, total: 1 })
    }
  })
})
const io = new Server(server, { transports: ["websocket"], perMessageDeflate: false, serveClient: false })
io.on("connection", (socket) => {
  const { person } = socket.handshake.query
  people.add(person)
  socket.join(person)
})
server.listen(0, "127.0.0.1", () => console.log(server.address().port))
