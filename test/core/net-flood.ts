/**
 * Sends many requests to hostile receivers and prints what that cost, as JSON. Usage:
 * `bun test/core/net-flood.ts <rounds> <url> …`. A process of its own: only its memory counts.
 */
import { request } from "../../src/core/net"

const CAP = 16_384
const [rounds = "1", ...urls] = process.argv.slice(2)

async function flood(times: number) {
  for (let round = 0; round < times; round++) {
    await Promise.all(
      urls.map(async (url) => {
        const limits = { timeout_ms: 150, capture_bytes: CAP, allow_private: ["127.0.0.1"] }
        const answer = await request({ url, method: "POST", body: "{}", ...limits }).catch(
          () => null,
        )
        if (answer && answer.body.length > CAP) throw new Error(`${answer.body.length} bytes kept`)
      }),
    )
  }
}

/** What is not given back to the system at once is no leak: the lowest of some looks counts. */
async function settled(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let look = 0; look < 5; look++) {
    Bun.gc(true)
    await Bun.sleep(20)
    least = Math.min(least, process.memoryUsage().rss)
  }
  return least
}

await flood(5)
const before = await settled()
await flood(Number(rounds))
const after = await settled()
console.log(JSON.stringify({ grown_mb: (after - before) / 1_000_000 }))
process.exit(0)
