import { expect, test } from "bun:test"
import { openClient } from "../../../cli/lib/client"
import { NOBODY } from "../../../cli/lib/profiles"
import { openActions } from "../../../cli/tui/actions"
import { press } from "../../../cli/tui/press"
import type { Intent } from "../../../cli/tui/state"
import { applyNews, type News } from "../../../cli/tui/store"
import { email, FakeApi, ID, KEY, received } from "../fake-api"
import { monitorWith, readOf } from "./rows"

/** What comes of an intent. */
async function newsOf(api: FakeApi, intent: Intent): Promise<News> {
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 2000, dry_run: false })
  const { promise, resolve } = Promise.withResolvers<News>()
  const nothing = () => {}
  openActions({ client, dispatch: resolve, copy: nothing, redraw: nothing, quit: nothing })(intent)
  return await promise
}

const timeline = (type: string) => [{ type, timestamp: "", recipient_email: null, detail: null }]

function withEmail(more: object): FakeApi {
  const api = new FakeApi()
  api.data(`GET /v1/emails/${ID}`, email({ thread_id: null, ...more }))
  api.data(`GET /v1/emails/${ID}/attempts`, [])
  return api
}

const openMessage = readOf("messages", ID)

test("a bounced message brings the reports about it, oldest first, and those of no other", async () => {
  using api = withEmail({ status: "bounced", timeline: timeline("email.bounced") })
  const [newest, oldest] = [received({ id: "2" }), received({ id: "1" })].map((mail) => ({
    ...mail,
    replied_to_message_id: ID,
  }))
  const other = received({ id: "3", replied_to_message_id: "another" })
  api.data("GET /v1/inbound-emails", [newest, other, oldest])
  const news = await newsOf(api, openMessage)
  expect(news).toMatchObject({
    is: "detail",
    screen: "messages",
    found: { reports: [{ id: "1" }, { id: "2" }] },
  })
  const asked = api.seen.find(({ path }) => path === "/v1/inbound-emails")
  expect(asked?.query).toEqual({ thread_id: ID, kind: "bounce", per_page: "100" })
})

test("a message that did not bounce asks for none, and a key without the scope gets none", async () => {
  using fine = withEmail({ timeline: timeline("email.delivered") })
  expect(await newsOf(fine, openMessage)).toMatchObject({ found: { reports: [] } })
  expect(fine.seen.map(({ path }) => path)).not.toContain("/v1/inbound-emails")
  using api = withEmail({ status: "bounced", timeline: timeline("email.bounced") })
  api.error("GET /v1/inbound-emails", 403, "forbidden", { required_scope: "inbound:read" })
  expect(await newsOf(api, openMessage)).toMatchObject({
    is: "detail",
    screen: "messages",
    found: { reports: [] },
  })
})

test("received mail is read, and opened, and its event sent again", async () => {
  using api = new FakeApi()
  api.data("GET /v1/inbound-emails", [received()])
  api.data(`GET /v1/inbound-emails/${ID}`, received())
  api.data(`POST /v1/inbound-emails/${ID}/redeliver`, { deliveries: [{}, {}] })
  const list = await newsOf(api, { do: "load_list", list: "inbound" })
  expect(list).toMatchObject({ is: "rows", list: "inbound", rows: [{ id: ID }] })
  const one = await newsOf(api, readOf("inbound", ID))
  expect(one).toMatchObject({ is: "detail", screen: "inbound", id: ID, found: { id: ID } })
  const screen = applyNews(press(monitorWith(0), "4").state, list).state
  const [redelivery] = press(press(screen, "R").state, "y").intents
  const sent = redelivery && (await newsOf(api, redelivery))
  expect(sent).toEqual({ is: "notice", text: "2 deliveries are sent again" })
})

test("a key without the scope, and an older server, are told where the mail would stand", async () => {
  using api = new FakeApi()
  api.error("GET /v1/inbound-emails", 403, "forbidden", { required_scope: "inbound:read" })
  const problem = "this needs a key with the scope inbound:read"
  expect(await newsOf(api, { do: "load_list", list: "inbound" })).toEqual({
    is: "problem",
    screen: "inbound",
    problem,
  })
  api.error("GET /v1/inbound-emails", 404, "not_found")
  const absent = "this server does not have this screen"
  expect(await newsOf(api, { do: "load_list", list: "inbound" })).toEqual({
    is: "problem",
    screen: "inbound",
    problem: absent,
  })
})
