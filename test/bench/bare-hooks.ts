/**
 * The limit of delivering: the runtime's own `fetch` with an HMAC a request, and nothing kept.
 * `PORT LANES DELIVERIES [CHARACTERS]` prints deliveries a second.
 */
import { createHmac, randomBytes } from "node:crypto"

const [port, lanes = 64, wanted = 1000, characters = 300] = process.argv.slice(2).map(Number)
const key = randomBytes(32)
const body = JSON.stringify({
  id: "evt_x",
  type: "email.delivered",
  data: { text: "x".repeat(characters) },
})
let left = wanted

const begun = performance.now()
await Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)))
console.log(JSON.stringify({ per_second: wanted / ((performance.now() - begun) / 1000) }))

async function work(lane: number) {
  while (left-- > 0) {
    const timestamp = Math.floor(Date.now() / 1000)
    const id = `evt_${Bun.randomUUIDv7()}`
    const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")
    const response = await fetch(`http://127.0.0.1:${port}/${lane}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": String(timestamp),
        "webhook-signature": `v1,${mac}`,
      },
      body,
    })
    await response.text()
    if (response.status !== 200) throw new Error(`answered ${response.status}`)
  }
}
