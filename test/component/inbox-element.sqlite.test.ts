import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { InboxClient } from "../../src/component/inbox-client"
import { type BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { root } from "../harness/migrations"
import { missing } from "../harness/peers"
import { FakeInbox } from "./fake-inbox"

const without = missing("chromium-headless-shell")
let browser: TestBrowser

beforeAll(async () => {
  if (!without) browser = await startBrowser()
})

afterAll(() => browser?.[Symbol.asyncDispose]())

const ROOT = "inbox.shadowRoot"
const FOCUS = `${ROOT}.activeElement`

/** A page that has the element, and `inbox` in it; `script` says what is done with it. */
async function openWith(server: FakeInbox, script: string): Promise<BrowserPage> {
  const entry = join(root, "src/component/component.ts")
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser" })
  server.files.set("/inbox.js", {
    type: "text/javascript",
    body: (await outputs[0]?.text()) ?? "",
  })
  const body = `<!doctype html><meta charset="utf-8"><title>Page</title><body><script type="module">
import "/inbox.js"
const inbox = globalThis.inbox = document.createElement("belfry-inbox")
document.body.append(inbox)
inbox.token = "first"
${script}
</script>`
  server.files.set("/", { type: "text/html", body })
  return await browser.open(`${server.url}/`)
}

const untilTitles = (page: BrowserPage, many: number) =>
  page.until(`${ROOT}?.querySelectorAll(".title").length === ${many}`)

describe.skipIf(without)("the element", () => {
  test("takes its tabs late, from an attribute or as frameworks set properties", async () => {
    await using server = fake()
    await using page = await openWith(server, `inbox.setAttribute("tabs", "billing")`)
    const names = (all: string) =>
      page.until(
        `[...${ROOT}.querySelectorAll(".tab bdi")].map((tab) => tab.textContent) == "${all}"`,
      )
    await names("All,Billing")
    await page.read(`inbox.setAttribute("tabs", "team")`)
    await names("All,Team")
    await page.read(`inbox.tabs = "billing,team"`)
    await names("All,Billing,Team")
    await page.read(`globalThis.known = inbox.client; inbox.setAttribute("tabs", "team")`)
    expect(await page.read<boolean>("inbox.client === known")).toBe(true)
  })

  test("makes no row anew because it is seen, and sees nothing while it is hidden", async () => {
    await using server = fake()
    server.create()
    await using page = await openWith(
      server,
      `inbox.setAttribute("layout", "panel"); inbox.hidden = true`,
    )
    await page.until(`${ROOT}?.querySelector(".row")`)
    await page.until(`inbox.client.state === "live"`)
    await page.read(`globalThis.row = ${ROOT}.querySelector(".row")`)
    const asked = server.asked.filter((name) => name === "POST /seen-all")
    if (asked.length > 0) throw new Error("it was seen while it was hidden")
    await page.read(`inbox.hidden = false`)
    server.create()
    await untilTitles(page, 2)
    server.markAll("seen")
    await page.until(`inbox.client.messages.every((one) => one.seen_at)`)
    await page.until(`row.isConnected`)
    if (!server.asked.includes("POST /seen-all")) throw new Error("it was not seen")
  })

  test("keeps the focus where a row, a button or a menu ends under it", async () => {
    await using server = fake()
    for (let n = 0; n < 26; n++) server.create()
    await using page = await openWith(server, `inbox.setAttribute("layout", "panel")`)
    await untilTitles(page, 25)
    await page.until(`inbox.client.state === "live"`)
    await page.read(`${ROOT}.querySelector(".wide").focus()`)
    await page.press("Enter")
    await untilTitles(page, 26)
    await page.until(`${FOCUS}?.id === "body"`)

    await page.read(`${ROOT}.querySelector("[data-at=more]").focus()`)
    await page.press("Enter")
    await page.until(`${FOCUS}?.role === "menuitem"`)
    server.mark("000026", "read")
    await page.until(`!${ROOT}.querySelector(".row").classList.contains("unread")`)
    await page.press("Escape")
    await page.until(`${FOCUS}?.ariaLabel?.endsWith("000026")`)
    await page.press("Enter")
    await page.until(`${FOCUS}?.role === "menuitem"`)
    server.remove("000026")
    await untilTitles(page, 25)
    await page.press("Escape")
    await page.until(`${FOCUS}?.textContent.includes("000025")`)

    await page.read(`${ROOT}.querySelector("[aria-label='Mark all as read']").focus()`)
    await page.press("Enter")
    await page.until(`${FOCUS}?.id === "body"`)
  })
})

test("a message stays among the unread ones until another one is opened", async () => {
  await using server = fake()
  server.create()
  server.create()
  const client = new InboxClient({ url: server.url, token: "first" })
  await client.start()
  await client.show({ filter: "unread" })
  const ids = () => client.messages.map(({ id }) => id)
  const read = async (id: string, left: number) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const isRead = () => client.counts.unread === left && server.messages.get(id)?.read_at
    client.addEventListener("change", () => isRead() && resolve())
    client.open(id)
    await promise
  }
  await read("000002", 1)
  expect(ids()).toEqual(["000002", "000001"])
  await read("000001", 0)
  expect(ids()).toEqual(["000001"])
  // A read that was under way may still bring it; its frame takes it away.
  const emptied = Promise.withResolvers<void>()
  const look = () => ids().length === 0 && emptied.resolve()
  client.addEventListener("change", look)
  await client.mark("000001", "archived")
  look()
  await emptied.promise
  client.stop()
})

const fake = () =>
  Object.assign(new FakeInbox(), {
    async [Symbol.asyncDispose](this: FakeInbox) {
      await this.stop()
    },
  })
