/**
 * Loads pixels at a steady rate, each from one of 100 addresses. `pixel-flood.ts PORT RATE` reads the
 * paths from its standard input, one a line; it says `ready` after the first second, and at SIGTERM how
 * many pictures were asked for and how many came.
 */
import { readFileSync } from "node:fs"

const [port = 0, rate = 0] = process.argv.slice(2).map(Number)
const paths = readFileSync(0, "utf8").split("\n").filter(Boolean)

const ADDRESSES = 100
const CONNECTIONS = 16
const TICK_MS = 10
const PICTURE = Buffer.from("GIF89a")
const READY_MS = 1_000
const DRAIN_MS = 1_000

const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
let asked = 0
let loaded = 0

const requestOf = (number: number) =>
  `GET ${paths[(number * 7) % paths.length]} HTTP/1.1\r\nHost: t.test\r\nUser-Agent: ${agent}\r\nX-Forwarded-For: 203.0.113.${number % ADDRESSES}\r\n\r\n`

function countPictures(_: unknown, data: Buffer) {
  for (let at = data.indexOf(PICTURE); at !== -1; at = data.indexOf(PICTURE, at + 1)) loaded += 1
}

const sockets = await Promise.all(
  Array.from({ length: CONNECTIONS }, () =>
    Bun.connect({ hostname: "127.0.0.1", port, socket: { data: countPictures } }),
  ),
)

const begun = performance.now()
const timer = setInterval(() => {
  const due = Math.floor(((performance.now() - begun) / 1000) * rate) - asked
  const share = Math.ceil(due / CONNECTIONS)
  for (const socket of sockets) {
    let text = ""
    for (let count = 0; count < share; count++) text += requestOf(asked++)
    socket.write(text)
  }
}, TICK_MS)
setTimeout(() => console.log("ready"), READY_MS)

process.on("SIGTERM", async () => {
  clearInterval(timer)
  await Bun.sleep(DRAIN_MS)
  const seconds = (performance.now() - begun - DRAIN_MS) / 1000
  console.log(JSON.stringify({ asked, loaded, seconds }))
  process.exit(0)
})
