import { afterAll, describe, expect, test } from "bun:test"
import { listen } from "../../src/http/listener"
import { startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, CLOSED, INBOX, subscriberApp, tokenOf } from "../inbox/subscriber-app"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const browser: TestBrowser | undefined = without ? undefined : await startBrowser()
const api = listen(subscriberApp(service), { host: "127.0.0.1", port: 0, idle_seconds: 10 })

/** A site of its own: an empty page at another port is another origin. */
const site = () =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
  })
const [ours, evil] = [site(), site()]

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await api.stop()
  await Promise.all([ours.stop(true), evil.stop(true)])
})

/** What a page at `origin` learns of a request. */
async function asked(origin: URL, path: string, init: object) {
  if (!browser) throw new Error("there is no browser")
  const tab = await browser.open(origin.href)
  const request = `fetch(${JSON.stringify(`${api.url}${path}`)}, ${JSON.stringify(init)})`
  const told = "async (answer) => [answer.status, answer.headers.get('x-request-id') !== null]"
  return tab.read(`${request}.then(${told}, (error) => error.name)`)
}

describe.skipIf(without)("in Chromium", () => {
  test("a page of a listed origin reads and writes for its subscriber, and no other page does", async () => {
    const project = await service.project()
    const origin = ours.url.origin
    await project.call("PATCH", "/v1/settings", { body: { allowed_origins: [origin] } })
    const token = await tokenOf(project, await addSubscriber(service, project))
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const writing = { method: "POST", headers, body: "{}" }

    expect(await asked(ours.url, INBOX, { headers })).toEqual([200, true])
    expect(await asked(ours.url, INBOX, writing)).toEqual([200, true])
    expect(await asked(evil.url, INBOX, { headers })).toBe("TypeError")
    expect(await asked(evil.url, INBOX, writing)).toBe("TypeError")

    const keyed = { headers: { "x-api-key": project.key } }
    expect(await asked(ours.url, INBOX, keyed)).toBe("TypeError")
    expect(await asked(ours.url, CLOSED, keyed)).toBe("TypeError")
    const as_bearer = { headers: { authorization: `Bearer ${project.key}` } }
    expect(await asked(ours.url, INBOX, as_bearer)).toBe("TypeError")
  })
})
