/**
 * The peer of the webhook deliveries: a BullMQ worker that signs and posts with undici, and keeps of
 * the attempt what ours keeps. Runs in the folder where both are installed: `node bullmq.mjs
 * REDIS_PORT PORT LANES DELIVERIES` prints deliveries a second. As many jobs at once as there are
 * endpoints: more of them (128, 200), and pipelining by ioredis, were no faster.
 */
import { createHmac, randomBytes, randomUUID } from "node:crypto"
import { createRequire } from "node:module"

const require = createRequire(`${process.cwd()}/`)
const { Queue, Worker } = require("bullmq")
const { Pool } = require("undici")

const CHUNK = 1000

const [redis, port, lanes, wanted] = process.argv.slice(2).map(Number)
const connection = { host: "127.0.0.1", port: redis, maxRetriesPerRequest: null }
const name = `hooks-${randomUUID()}`
const queue = new Queue(name, { connection })
const data = { id: "evt_x", type: "email.delivered", data: { text: "x".repeat(300) } }
for (let done = 0; done < wanted; done += CHUNK) {
  const size = Math.min(CHUNK, wanted - done)
  const jobs = Array.from({ length: size }, (_, number) => ({
    name: "deliver",
    data: { lane: (done + number) % lanes, body: JSON.stringify(data) },
    opts: { attempts: 6, backoff: { type: "exponential", delay: 60_000 } },
  }))
  await queue.addBulk(jobs)
}

const key = randomBytes(32)
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: lanes })
let delivered = 0
let finish
const finished = new Promise((resolve) => {
  finish = resolve
})
const begun = performance.now()
const worker = new Worker(
  name,
  async ({ id, attemptsMade, data: { lane, body } }) => {
    const started = performance.now()
    const at = new Date().toISOString()
    const timestamp = Math.floor(Date.now() / 1000)
    const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")
    const headers = {
      "content-type": "application/json",
      "webhook-id": String(id),
      "webhook-timestamp": String(timestamp),
      "webhook-signature": `v1,${mac}`,
    }
    const path = `/${lane}`
    const response = await pool.request({ path, method: "POST", headers, body })
    const text = await response.body.text()
    if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`)
    const latency_ms = Math.round(performance.now() - started)
    const response_status = response.statusCode
    const attempt = attemptsMade + 1
    return {
      url: `http://127.0.0.1:${port}${path}`,
      request_headers: { ...headers, "webhook-signature": "***" },
      response_headers: response.headers,
      response_body: text.slice(0, 1000),
      attempt_log: [{ attempt, at, response_status, error: null, latency_ms }],
    }
  },
  { connection, concurrency: lanes },
)
worker.on("completed", () => {
  delivered += 1
  if (delivered === wanted) finish()
})
await finished
const seconds = (performance.now() - begun) / 1000
await worker.close()
await queue.obliterate({ force: true })
await queue.close()
await pool.close()
console.log(JSON.stringify({ per_second: wanted / seconds, stored: delivered }))
process.exit(0)
