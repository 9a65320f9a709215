/**
 * A process that sends by nodemailer's pool, on Node or Bun: `PORT WARM MESSAGES`, with the key and
 * the text as JSON on stdin. Sends `WARM` messages for nobody's clock, then prints how many a second
 * it sends of the others, each answered with 250.
 */
import { createTransport } from "nodemailer"

const CONNECTIONS = 20
/** More than there are connections: one message is composed while another is on the wire. */
const LANES = 40

const [port, warm, messages] = process.argv.slice(2).map(Number)
const input = await new Response(process.stdin).text()
const { privateKey, text } = JSON.parse(input)
const pool = createTransport({
  host: "127.0.0.1",
  port,
  pool: true,
  maxConnections: CONNECTIONS,
  maxMessages: Number.POSITIVE_INFINITY,
  ignoreTLS: true,
  dkim: { domainName: "bench.test", keySelector: "svc1", privateKey },
})

async function send(count) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      const subject = "Your order has shipped"
      await pool.sendMail({ from: "shop@bench.test", to: "user@mailbox.test", subject, text })
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

await send(warm)
const begun = performance.now()
await send(messages)
console.log((messages / (performance.now() - begun)) * 1000)
pool.close()
