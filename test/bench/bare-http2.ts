/**
 * The least that sends a push message to APNs on our runtime, with a deadline: `bare-http2.ts URL CERT WARM MESSAGES
 * IN_FLIGHT`, with headers and payload as JSON on stdin. Prints how many a second it sends.
 */
import { readFileSync } from "node:fs"

const [url = "", cert = "", ...counts] = process.argv.slice(2)
const [warm = 0, messages = 0, in_flight = 0] = counts.map(Number)
const { headers, payload } = (await Bun.stdin.json()) as {
  headers: Record<string, string>
  payload: object
}
const DEADLINE_MS = 10_000
const ca = readFileSync(cert, "utf8")

async function send(count: number) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      const answer = await fetch(url, {
        ...{ method: "POST", protocol: "http2", tls: { ca } },
        headers: { ...headers, "apns-id": crypto.randomUUID() },
        body: JSON.stringify(payload),
        signal: AbortSignal.timeout(DEADLINE_MS),
      })
      if (answer.status !== 200) throw new Error(`${answer.status}`)
      await answer.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: in_flight }, lane))
}

await send(warm)
const begun = performance.now()
await send(messages)
console.log((messages / (performance.now() - begun)) * 1000)
process.exit(0)
