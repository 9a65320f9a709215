import { expect, test } from "bun:test"
import { hearSending } from "../../../cli/tui/monitor"
import { initialState } from "../../../cli/tui/state"
import { applyNews, type News } from "../../../cli/tui/store"
import { belfry, onTerminal } from "../belfry"
import { email, FakeApi, ID, KEY } from "../fake-api"

function server(): FakeApi {
  const api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  const events = [{ id: "evt_1" }]
  api.data(`GET /v1/emails/${ID}/events`, { email_id: ID, status: "delivered", events })
  api.data("GET /v1/webhooks", [])
  api.data("GET /v1/queue", { by_state: [], by_domain: [] })
  api.data("GET /v1/inbound-emails", [])
  return api
}

test("no address of any request holds the key, and every request carries it", async () => {
  using api = server()
  const words = ["tui", "--url", api.url, "--api-key", KEY]
  const { exit, out } = await onTerminal(words, { until: "ann@mailbox.test", type: "234q" })
  expect([exit, out]).toEqual([0, expect.stringContaining("\u001b[?1049l")])
  expect(api.seen.map(({ path }) => path)).toContain("/v1/events/stream")
  for (const { url, headers } of api.seen) {
    expect(url).not.toContain(KEY)
    if (!url.endsWith("/v1/health")) expect([url, headers["x-api-key"]]).toEqual([url, KEY])
  }
})

test("what every answer says of sending is news only where it is another than before", () => {
  let state = initialState(80, 24, 0, "box")
  const told: News[] = []
  const store = {
    state: () => state,
    dispatch(news: News) {
      told.push(news)
      state = applyNews(state, news).state
    },
  }
  const status = "x-account-sending-status"
  const held = { [status]: "paused", [`${status}-reason`]: "bounces" }
  const answers = [{}, held, held, { ...held, [`${status}-reason`]: "complaints" }, {}]
  for (const headers of answers) hearSending(store, new Headers(headers))
  expect(told).toHaveLength(2)
  expect(state.sending).toEqual({ status: "paused", reason: "complaints" })
})

test("y puts the id into the clipboard of the terminal", async () => {
  using api = server()
  const words = ["tui", "--url", api.url, "--api-key", KEY]
  const { out } = await onTerminal(words, { until: "ann@mailbox.test", type: "yq" })
  expect(out).toContain(`\u001b]52;c;${Buffer.from(ID).toString("base64")}\u0007`)
})

test("a key that may not read events still shows emails", async () => {
  using api = server()
  const refused = {
    code: "forbidden",
    message: "No.",
    details: { required_scope: "webhooks:read" },
  }
  for (const path of ["/v1/events/stream", "/v1/events", "/v1/webhooks", "/v1/queue"]) {
    api.answer(`GET ${path}`, { status: 403, body: { error: refused, meta: {} } })
  }
  api.data("GET /v1/health", { time: new Date().toISOString() })
  const words = ["tui", "--url", api.url, "--api-key", KEY]
  const { exit } = await onTerminal(words, { until: "● polling", type: "q" })
  expect(exit).toBe(0)
})

test("without a terminal it is exit 2, and says what to use instead", async () => {
  const { exit, out, err } = await belfry(["tui", "--url", "http://127.0.0.1:1", "--api-key", KEY])
  expect([exit, out]).toEqual([2, ""])
  expect(err).toContain("terminal")
})
