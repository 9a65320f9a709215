import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { accept } from "../../src/messages/pipeline"
import { ackToken } from "../../src/push/ack-token"
import { webPushPayload } from "../../src/push/providers/webpush"
import type { PushContent } from "../../src/push/push-content"
import { pushAcks } from "../../src/push/tables"
import { subscriber } from "../fakes/push-service"
import { startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, tokenOf } from "../inbox/subscriber-app"
import { addDevice, pushLetter } from "../push/pushes"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const { store, parts } = service
const api = service.listen()
const browser = without ? undefined : await startBrowser()
afterAll(() => browser?.[Symbol.asyncDispose]())

/** A site whose worker imports that of the server, at the address where this server is. */
const site = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch({ url }) {
    const { pathname } = new URL(url)
    if (pathname === "/sw.js") {
      const script = await (await fetch(`${api.url}/sw.js`)).text()
      const own = script.replaceAll("http://belfry.test", api.url.replace(/\/$/, ""))
      return new Response(own, { headers: { "content-type": "text/javascript" } })
    }
    if (pathname === "/worker.js")
      return new Response('importScripts("/sw.js")', {
        headers: { "content-type": "text/javascript" },
      })
    const page = '<!doctype html><title>Shop</title><link rel="icon" href="data:,">'
    return new Response(page, { headers: { "content-type": "text/html" } })
  },
})
afterAll(() => site.stop(true))

/** This browser has no screen: what it is asked to show and to open is noted. */
const WITHOUT_SCREEN = `
  self.shown = []
  registration.showNotification = async (title, options) => { shown.push({ title, ...options }) }
  clients.openWindow = async (url) => { self.led = url }`

/** A page with a worker, to which the tools of developers push. */
async function shop() {
  if (!browser) throw new Error("there is no browser")
  const page = await browser.open(site.url.origin)
  const { tab } = page
  await tab.browserContext().overridePermissions(site.url.origin, ["notifications"])
  const tools = await tab.createCDPSession()
  const registered = Promise.withResolvers<string>()
  tools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
    const [first] = registrations.filter(({ scopeURL }) => scopeURL.startsWith(site.url.origin))
    if (first) registered.resolve(first.registrationId)
  })
  await tools.send("ServiceWorker.enable")
  const own_url = `${site.url}worker.js?${crypto.randomUUID()}`
  await page.read(
    `navigator.serviceWorker.register('${own_url}').then(() => navigator.serviceWorker.ready).then(() => 1)`,
  )
  const target = await tab.browser().waitForTarget((one) => one.url() === own_url)
  const worker = await target.worker()
  if (!worker) throw new Error("the page has no worker")
  await worker.evaluate(WITHOUT_SCREEN)
  const registrationId = await registered.promise
  const project = await service.project()
  const device = await addDevice(store, project.project_id, {
    platform: "web",
    provider: "webpush",
  })
  const { origin } = site.url
  return {
    origin,
    project,
    read: <Value>(expression: string) => worker.evaluate(expression) as Promise<Value>,
    deliver: (data: string) =>
      tools.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data }),
    /** Has the worker get a message as a browser hands it over. */
    async push(fields: Partial<PushContent>, badge: number | null = null): Promise<string> {
      const [message] = await store.tx((tx) => accept(tx, [pushLetter(device, {}, fields)]))
      const push_id = message?.id ?? ""
      const content: PushContent = { priority: "high", ...fields }
      const built = { push_id, ack_token: ackToken(parts.secrets, push_id), content, badge }
      await this.deliver(webPushPayload(built))
      return push_id
    },
    /** Nobody can click here: the handlers of the worker get what they would from the screen. */
    act: (type: string, action = "") =>
      worker.evaluate(`(async () => {
        const notification = { data: self.shown.at(-1).data, close() {} }
        const facts = { notification, action: ${JSON.stringify(action)}, waitUntil() {} }
        dispatchEvent(Object.assign(new Event("${type}"), facts))
      })()`),
    [Symbol.asyncDispose]: () => page[Symbol.asyncDispose](),
  }
}

/** What the device told, once there are so many. */
async function told(id: string, wanted: number): Promise<string[]> {
  while (true) {
    const rows = await store.read.select().from(pushAcks).where(eq(pushAcks.message_id, id))
    if (rows.length >= wanted) return rows.map(({ event }) => event).sort()
    await Bun.sleep(20)
  }
}

describe.skipIf(without)("the worker in Chromium", () => {
  test("shows all that a message has, and a button leads to its own page", async () => {
    await using page = await shop()
    const id = await page.push({
      ...{ title: "Paid", body: "Thank you", icon: "/i.png", image_url: "/p.png", url: "/orders" },
      ...{ collapse_id: "order-1", data: { order: "1" } },
      action_buttons: [
        { id: "see", label: "See", url: "/orders/1" },
        { id: "later", label: "Later" },
      ],
    })
    expect(await told(id, 1)).toEqual(["delivered"])
    const shown = await page.read<object>("shown[0]")
    expect(shown).toMatchObject({
      ...{ title: "Paid", body: "Thank you", tag: "order-1", renotify: true },
      ...{ icon: "/i.png", image: "/p.png" },
      actions: [
        { action: "see", title: "See" },
        { action: "later", title: "Later" },
      ],
      data: { order: "1", push_id: id },
    })
    await page.act("notificationclick", "see")
    expect(await told(id, 2)).toEqual(["delivered", "opened"])
    expect(await page.read<string>("self.led")).toBe(`${page.origin}/orders/1`)
  })

  test("a button without a page, and a click beside the buttons, lead to that of the message", async () => {
    await using page = await shop()
    for (const action of ["later", ""]) {
      const action_buttons = [{ id: "later", label: "Later" }]
      const id = await page.push({ title: "Paid", url: "https://shop.test/o", action_buttons })
      await told(id, 1)
      await page.act("notificationclick", action)
      expect(await told(id, 2)).toEqual(["delivered", "opened"])
      expect(await page.read<string>("self.led")).toBe("https://shop.test/o")
    }
  })

  test("what is closed reads dismissed, and what has nothing to show only reads delivered", async () => {
    await using page = await shop()
    const id = await page.push({ title: "Paid" })
    await told(id, 1)
    await page.act("notificationclose")
    expect(await told(id, 2)).toEqual(["delivered", "dismissed"])
    expect(await told(await page.push({ content_available: true }), 1)).toEqual(["delivered"])
    expect(await page.read<number>("shown.length")).toBe(1)
  })

  test("a badge that no shell ever answers for holds nothing up", async () => {
    await using page = await shop()
    await page.read("navigator.setAppBadge = (badge) => new Promise(() => (self.badge = badge)), 1")
    expect(await told(await page.push({ title: "Paid" }, 3), 1)).toEqual(["delivered"])
    expect(await page.read<unknown[]>("[badge, shown[0].title]")).toEqual([3, "Paid"])
  })

  test("a script in the place of an address is never opened", async () => {
    await using page = await shop()
    const webpush = { notification: { navigate: "javascript:alert(1)" } }
    const id = await page.push({ title: "Paid", webpush })
    await told(id, 1)
    await page.act("notificationclick")
    expect(await told(id, 2)).toEqual(["delivered", "opened"])
    expect(await page.read<string | null>("self.led ?? null")).toBeNull()
  })

  test("a subscription that the browser ended is made again, where the page left its token", async () => {
    await using page = await shop()
    const { project } = page
    const subscriber_id = await addSubscriber(service, project)
    const kept = { device_id: "laptop", token: await tokenOf(project, subscriber_id) }
    const subscription = { endpoint: "https://push.test/new", keys: subscriber().keys }
    await page.read(
      `PushManager.prototype.subscribe = async () => (${JSON.stringify(subscription)})`,
    )
    const renew = () =>
      page.read(`new Promise((done) =>
        dispatchEvent(Object.assign(new Event("pushsubscriptionchange"), { waitUntil: done })))
        .then(() => 1)`)
    const devices = async () => (await project.call("GET", "/v1/devices")).body.data
    const before = await devices()
    await renew()
    expect(await devices()).toEqual(before)
    await page.read(`new Promise((done) => {
      const open = indexedDB.open("belfry", 1)
      open.onsuccess = () => {
        const change = open.result.transaction("push", "readwrite")
        change.objectStore("push").put(${JSON.stringify(kept)}, "device")
        change.oncomplete = () => done(1)
      }
    })`)
    await renew()
    expect(await devices()).toMatchObject([
      { device_id: "laptop", token: subscription.endpoint },
      ...before,
    ])
  })

  test("what others push is not its business", async () => {
    await using page = await shop()
    for (const text of ["", "hello", "{}", '{"web_push":8030}', '{"notification":{"title":"x"}}'])
      await page.deliver(text)
    const id = await page.push({ title: "Ours" })
    await told(id, 1)
    expect(await page.read<string[]>("shown.map((one) => one.title)")).toEqual(["Ours"])
  })
})
