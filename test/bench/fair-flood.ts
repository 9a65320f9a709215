/**
 * Posts the same send over so many connections, each again at once after its answer.
 * `bun fair-flood.ts URL KEY CONNECTIONS BODY_FILE`; says `ready` after the first answer, and at SIGTERM
 * how many answers had which status.
 */
import { readFileSync } from "node:fs"

const [url = "", key = "", connections = "", file = ""] = process.argv.slice(2)
const body = readFileSync(file)
const headers = { "x-api-key": key, "content-type": "application/json" }
const PAUSE_MS = 50
const statuses: Record<string, number> = {}

process.on("SIGTERM", () => {
  console.log(JSON.stringify(statuses))
  process.exit(0)
})

async function keepPosting() {
  for (let count = 0; ; count++) {
    const own = { ...headers, "idempotency-key": crypto.randomUUID() }
    const answer = await fetch(url, { method: "POST", headers: own, body })
    await answer.arrayBuffer()
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
    if (count === 0) console.log("ready")
    if (answer.status === 503) await Bun.sleep(PAUSE_MS)
  }
}

await Promise.all(Array.from({ length: Number(connections) }, keepPosting))
