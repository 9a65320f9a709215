/** A process that sends by nodemailer's pool: `PORT MESSAGES BYTES`, with a DKIM key on stdin. */
import { createTransport } from "nodemailer"
import { textOf } from "./mail"

const [port, messages, bytes] = process.argv.slice(2).map(Number)
const privateKey = await Bun.stdin.text()
const pool = createTransport({
  host: "127.0.0.1",
  port: port ?? 0,
  pool: true,
  maxConnections: 20,
  maxMessages: Number.POSITIVE_INFINITY,
  ignoreTLS: true,
  dkim: { domainName: "bench.test", keySelector: "svc1", privateKey },
})
const text = textOf(bytes ?? 0)
let left = messages ?? 0

async function lane() {
  while (left > 0) {
    left -= 1
    const subject = "Your order has shipped"
    await pool.sendMail({ from: "shop@bench.test", to: "user@mailbox.test", subject, text })
  }
}

await Promise.all(Array.from({ length: 40 }, lane))
pool.close()
