import { afterAll, expect, test } from "bun:test"
import { join } from "node:path"
import { startBrowser } from "../harness/browser"
import { root } from "../harness/migrations"
import { missing } from "../harness/peers"
import { FakeInbox } from "./fake-inbox"

const without = missing("chromium-headless-shell")
const server = new FakeInbox()
afterAll(() => server.stop())

/** More than a subscriber may have sockets. To a browser, frames of one origin are what tabs are. */
const TABS = 12

const claims = Buffer.from(JSON.stringify({ iss: "belfry", sub: "ann" })).toString("base64url")
/** Each tab has its own token of the same subscriber. */
const tokenOf = (tab: number | string) => `head.${claims}.${tab}`

const PAGE = `<!doctype html><meta charset="utf-8"><title>Tabs</title><body><script type="module">
import { InboxClient } from "/client.js"
const client = new InboxClient({ url: location.origin, token: "${tokenOf("")}" + location.hash.slice(1) })
globalThis.client = client
globalThis.news = []
client.addEventListener("message", ({ detail }) => news.push(detail.message.id))
client.start().then(() => { globalThis.has_started = true })
</script>`

async function serve(): Promise<void> {
  const entry = join(root, "src/component/inbox-client.ts")
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser" })
  const [client] = await Promise.all(outputs.map((output) => output.text()))
  server.files.set("/client.js", { type: "text/javascript", body: client ?? "" })
  server.files.set("/tab", { type: "text/html", body: PAGE })
  server.files.set("/", { type: "text/html", body: "<!doctype html><title>Tabs</title><body>" })
}

test.skipIf(without)("twelve tabs share one socket, and agree", async () => {
  await serve()
  for (let tab = 0; tab < TABS; tab++) server.tokens.add(tokenOf(tab))
  await using browser = await startBrowser()
  await using page = await browser.open(`${server.url}/`)
  await page.read(`for (let at = 0; at < ${TABS}; at++) {
    document.body.append(Object.assign(document.createElement("iframe"), { src: "/tab#" + at, id: "tab" + at }))
  }`)
  const all = (holds: string) =>
    page.until(
      `Array.from(frames).every((tab) => { const { client, news } = tab; return client && (${holds}) })`,
    )
  await all(`client.state === "live" && tab.has_started`)
  expect(server.sockets.size).toBe(1)
  const { id } = server.create({ category: "billing" })
  await all(`client.messages.length === 1 && client.counts.unread === 1`)
  await page.read(`frames[0].client.mark("${id}", "read")`)
  await all(`client.messages[0].read_at && client.counts.unread === 0`)
  for (let left = TABS - 1; left >= TABS - 3; left--) {
    // The tab with the socket closes, and something happens before another one has taken over.
    const [socket] = server.sockets
    const signed_in = server.asked.length
    const leader = socket?.data.token?.split(".")[2]
    await page.read(`document.getElementById("tab${leader}").remove()`)
    while (socket && server.sockets.has(socket)) await Bun.sleep(1)
    server.create()
    await all(`client.messages.length === ${1 + TABS - left} && news.length === ${1 + TABS - left}`)
    expect(server.asked.slice(signed_in).filter((name) => name.startsWith("auth"))).toHaveLength(1)
    expect(server.sockets.size).toBe(1)
  }
})
