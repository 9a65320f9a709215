import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { simpleParser } from "mailparser"
import { smtpSink } from "../fakes/smtp-sink"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { startReceiver } from "../harness/receiver"
import { until } from "./mails"
import { lean, relaySettings, startServe } from "./serve"

const AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
const TARGET = "https://shop.test/a?x=1&y=2"

/** Nobody reads a mail sooner, so no hit before counts as one of a person. */
const SOONEST_READER_MS = 2_100

async function ask<Data>(server: Belfry, path: string, body?: object): Promise<Data> {
  const init = { method: "POST", headers: { "content-type": "application/json" } }
  const answer = await server.request(path, body && { ...init, body: JSON.stringify(body) })
  expect(answer.ok).toBe(true)
  return ((await answer.json()) as { data: Data }).data
}

interface Statistics {
  opens: { total: number; human: number }
  clicks: { total: number; human: number }
}

/** Sends html and reads it as its recipient has it: the pixel, and the link. */
async function delivered(server: Belfry) {
  const html = '<p>Hi</p><a href="https://shop.test/a?x=1&amp;y=2">Shop</a>'
  const mail = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Hi", html }
  const tracked = { ...mail, track_opens: true, track_clicks: true }
  const { id } = await ask<{ id: string }>(server, "/v1/emails", tracked)
  await until("the delivery", async () => {
    const { status } = await ask<{ status: string }>(server, `/v1/emails/${id}`)
    return status === "delivered"
  })
  const raw = Buffer.from(await (await server.request(`/v1/emails/${id}/raw`)).arrayBuffer())
  const { html: received } = await simpleParser(raw)
  const [, pixel = ""] = /<img src="([^"]+)"/.exec(received || "") ?? []
  const [, link = ""] = /<a href="([^"]+)"/.exec(received || "") ?? []
  await Bun.sleep(SOONEST_READER_MS)
  return { id, pixel, link }
}

const load = (url: string) => fetch(url, { headers: { "user-agent": AGENT }, redirect: "manual" })

test("openings and clicks reach a webhook, and a server that is stopped at once counts the last of them", async () => {
  using receiver = startReceiver()
  const home = makeHome()
  let server = await startBelfry({ home, env: lean })
  try {
    await ask(server, "/v1/webhooks", {
      url: receiver.url,
      events: ["email.opened", "email.clicked"],
    })
    const { id, pixel, link } = await delivered(server)
    expect([pixel, link].every((url) => url.startsWith(`${server.url}/t/`))).toBe(true)
    expect((await load(pixel)).status).toBe(200)
    expect((await load(link)).headers.get("location")).toBe(TARGET)
    const events = await until(
      "the events",
      () => receiver.received.length >= 2 && receiver.received,
    )
    const told = events.map(({ body }) => JSON.parse(body))
    expect(told.map(({ type }) => type).sort()).toEqual(["email.clicked", "email.opened"])
    expect(told.find(({ type }) => type === "email.clicked").data).toMatchObject({
      ...{ message_id: id, recipient_email: "ann@mailbox.test" },
      ...{ url: TARGET, actor: "human", user_agent: AGENT },
    })

    await load(pixel)
    await server.stop()
    server = await startBelfry({ home, env: lean })
    const stats = await ask<Statistics>(server, `/v1/emails/${id}/tracking`)
    expect(stats).toMatchObject({ opens: { total: 2, human: 2 }, clicks: { total: 1, human: 1 } })
    const page = await load(`${server.url}${new URL(link).pathname}`)
    expect([page.status, page.headers.get("location")]).toEqual([302, TARGET])
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
})

test("a server that does not know its public address leaves mail as it is, and says so", async () => {
  using relay = smtpSink()
  await using server = await startServe({ env: relaySettings(relay.port) })
  const html = '<a href="https://shop.test/a">Shop</a>'
  const mail = { from: "me@example.test", to: "ann@shop.test", subject: "Hi", html }
  const body = JSON.stringify({ ...mail, track_opens: true, track_clicks: true, category: "news" })
  const answer = await server.request("/v1/emails", { method: "POST", body })
  const { meta } = (await answer.json()) as { meta: { warnings: { code: string }[] } }
  expect(meta.warnings.map(({ code }) => code)).toEqual(["no_public_address"])
  const [raw = ""] = await until("the mail", () => relay.received.length > 0 && relay.received)
  expect(raw).toContain(html)
  expect(raw).not.toMatch(/localhost|127\.0\.0\.1|\/t\/[oc]\/|\/u\//)
  const { warnings } = (await (await server.request("/readyz")).json()) as { warnings: string[] }
  expect(warnings).toEqual([expect.stringContaining("base_url is not set")])
  expect(server.stderr.all.join("\n")).toContain("base_url is not set")
})
