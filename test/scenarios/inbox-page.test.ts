import { expect, test } from "bun:test"
import { type Belfry, startBelfry } from "../harness/binary"
import { type BrowserPage, startBrowser } from "../harness/browser"
import { cuttingProxy } from "../harness/cutting-proxy"
import { missing } from "../harness/peers"
import { isVerified, startReceiver } from "../harness/receiver"
import { TEST_MS } from "../harness/waits"
import { get, until } from "./mails"
import { lean } from "./serve"

const SHADOW = "document.querySelector('belfry-inbox').shadowRoot"
const badge = `${SHADOW}.querySelector('.badge')?.textContent`
const rows = `[...${SHADOW}.querySelectorAll('.row')]`

async function ask<Data>(server: Belfry, method: string, path: string, body: object) {
  const answer = await server.request(path, { method, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${text}`)
  return (JSON.parse(text) as { data: Data }).data
}

/** A page of a customer, which embeds the inbox under a strict policy. */
function customersPage(server: string, token: string) {
  const policy = [
    "default-src 'none'",
    `script-src ${server}`,
    `connect-src ${server} ${server.replace("http", "ws")}`,
  ]
  const body = `<!doctype html><html lang="en"><title>Shop</title>
<script type="module" src="${server}/inbox.js"></script>
<belfry-inbox url="${server}" token="${token}" tabs="billing"></belfry-inbox>`
  const headers = {
    "content-type": "text/html;charset=utf-8",
    "content-security-policy": policy.join("; "),
  }
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      new URL(url).pathname === "/"
        ? new Response(body, { headers })
        : new Response("", { status: 204 }),
  })
}

const openPanel = async (page: BrowserPage) => {
  await page.until(`${SHADOW}?.querySelector('.bell') != null`)
  await page.read(`${SHADOW}.querySelector('.bell').click()`)
}

test.skipIf(missing("chromium-headless-shell"))(
  "a publish reaches a page whose network was off; what is read there is read everywhere; its action is a webhook",
  async () => {
    await using server = await startBelfry({ env: lean })
    using hooks = startReceiver()
    const { id } = await ask<{ id: string }>(server, "POST", "/v1/subscribers", {
      external_id: "ann",
    })
    await ask(server, "POST", "/v1/topics", { name: "News", key: "news" })
    await ask(server, "POST", "/v1/topics/news/subscribers", { subscriber_ids: [id] })
    const { secret } = await ask<{ secret: string }>(server, "POST", "/v1/webhooks", {
      url: hooks.url,
      events: ["inbox.*"],
    })
    const { token } = await ask<{ token: string }>(server, "POST", "/v1/subscriber-inbox/token", {
      subscriber_id: id,
    })
    using way = await cuttingProxy()
    const { port } = new URL(server.url)
    way.leadTo(Number(port))
    using shop = customersPage(`http://127.0.0.1:${way.port}`, token)
    using elsewhere = customersPage(server.url, token)
    const allowed_origins = [shop, elsewhere].map(({ url }) => url.origin)
    await ask(server, "PATCH", "/v1/settings", { allowed_origins })

    await using browser = await startBrowser()
    await using page = await browser.open(shop.url.href)
    await using other = await browser.open(elsewhere.url.href)
    await page.until(`document.querySelector('belfry-inbox').client?.state === 'live'`)
    await other.until(`document.querySelector('belfry-inbox').client?.state === 'live'`)
    way.leadTo(0)
    await page.until(`document.querySelector('belfry-inbox').client?.state !== 'live'`)
    const actions = [{ key: "accept", label: "Accept" }]
    const content = { in_app: { title: "An invitation", body: "Will you come?", actions } }
    await ask(server, "POST", "/v1/topics/news/publish", { channels: ["in_app"], content })
    await other.until(`${badge} === '1'`)
    expect(await page.read<string>(`${SHADOW}.textContent`)).not.toContain("An invitation")
    way.leadTo(Number(port))
    await page.until(`${badge} === '1'`)

    await openPanel(page)
    await page.until(`${rows}.length === 1`)
    await page.read(`${rows}[0].querySelector('.open').click()`)
    await other.until(`document.querySelector('belfry-inbox').client.counts.unread === 0`)
    const [message] = await get<{ id: string; read_at: string | null }[]>(
      server,
      "/v1/inbox?external_id=ann&state=read",
    )
    const listed = await server.cli("inbox", "list", "--state", "read", "--json")
    expect(JSON.parse(listed.stdout)).toMatchObject([{ id: message?.id, title: "An invitation" }])

    await page.read(
      `[...${rows}[0].querySelectorAll('.act')].find((one) => one.textContent === 'Accept').click()`,
    )
    const told = await until("the webhook of the action", () =>
      hooks.received.find(({ body }) => body.includes('"inbox.action"')),
    )
    expect(isVerified(secret, told)).toBe(true)
    expect(JSON.parse(told.body).data).toMatchObject({
      ...{ inbox_message_id: message?.id, subscriber_id: id, external_id: "ann" },
      action_key: "accept",
    })
    await other.until(
      `document.querySelector('belfry-inbox').client.messages[0]?.actions[0]?.completed_at != null`,
    )
  },
  TEST_MS.on_binary,
)
