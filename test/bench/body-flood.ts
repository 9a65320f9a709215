/**
 * Sends so many requests with the same body at once, and again half a second after the last answer.
 * `bun body-flood.ts PORT KEY COUNT KIND`; says `ready` when the first ones are answered, and at
 * SIGTERM how many answers had which status.
 */
import { type OpenRequest, openRequest } from "../harness/raw-request"
import { FLOODS, type FloodKind } from "./flood-kinds"

const [port = "", key = "", count = "", kind = ""] = process.argv.slice(2)
const body = FLOODS[kind as FloodKind]()
const head = [
  "POST /v1/emails/batch HTTP/1.1",
  "Host: localhost",
  `Authorization: Bearer ${key}`,
  "Content-Type: application/json",
  `Content-Length: ${body.length}`,
]
const PAUSE_MS = 500
const statuses: Record<string, number> = {}

async function once() {
  using request: OpenRequest = await openRequest(Number(port), head)
  await request.send(body)
  const { status } = await request.answer
  statuses[status] = (statuses[status] ?? 0) + 1
}

process.on("SIGTERM", () => {
  console.log(JSON.stringify(statuses))
  process.exit(0)
})

for (let burst = 1; ; burst++) {
  await Promise.all(Array.from({ length: Number(count) }, once))
  if (burst === 1) console.log("ready")
  await Bun.sleep(PAUSE_MS)
}
