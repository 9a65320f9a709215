import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { accounts } from "../../src/identity/tables"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { FIREFOX, type ReceivedLetter, receive, UNDECIDED } from "./letters"

const service = await sharedService()
const clock = movableClock()

const HTML =
  '<html><body><p>Hi</p><a href="https://shop.test/a?x=1&amp;y=2">a</a><a href="https://shop.test/b">b</a></body></html>'

async function letter(fields: Record<string, unknown> = {}, settings: object = {}) {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: settings })
  const received = await receive(service, project, { html: HTML, ...fields })
  clock.advance({ seconds: 60 })
  const stats = async () => {
    await service.parts.hits.flush()
    return (await project.get(`/v1/emails/${received.id}/tracking`)).body.data
  }
  const email = async () => (await project.get(`/v1/emails/${received.id}`)).body.data
  return { project, ...received, stats, email }
}

const load = (path: string | undefined, headers: Record<string, string> = {}) =>
  service.anybody.get(path ?? "", { "user-agent": FIREFOX, ...headers })

const follow = (one: Pick<ReceivedLetter, "links">, at = 0) => load(one.links[at])

test("a picture tells of openings, and links lead on to where they led", async () => {
  const one = await letter()
  const picture = await load(one.pixel)
  expect([picture.status, picture.headers.get("content-type")]).toEqual([200, "image/gif"])
  expect(picture.headers.get("cache-control")).toBe("no-store")
  expect(picture.headers.get("set-cookie")).toBeNull()
  expect(picture.bytes.length).toBeLessThan(60)
  const led = await follow(one)
  expect([led.status, led.headers.get("location")]).toEqual([302, "https://shop.test/a?x=1&y=2"])
  expect(led.headers.get("cache-control")).toBe("no-store")
  expect(led.headers.get("set-cookie")).toBeNull()
  const { opens, clicks, links, recent, ...rest } = await one.stats()
  expect(rest).toEqual({ email_id: one.id, track_opens: true, track_clicks: true })
  expect(opens).toMatchObject({ total: 1, unique: 1, human: 1, machine: 0 })
  expect(clicks).toMatchObject({ total: 1, unique: 1, human: 1, machine: 0 })
  expect(links).toMatchObject([
    { url: "https://shop.test/a?x=1&y=2", total: 1, unique: 1, human: 1 },
  ])
  expect(recent).toMatchObject([
    { type: "click", url: "https://shop.test/a?x=1&y=2", actor: "human" },
    { type: "open", url: null, actor: "human", client: "Firefox", os: "Linux", device: "desktop" },
  ])
})

test("the record, the list, the events and the timeline tell of people; the status stays", async () => {
  const one = await letter()
  await load(one.pixel)
  clock.advance({ seconds: 10 })
  await load(one.pixel)
  await follow(one, 1)
  await one.stats()
  const email = await one.email()
  expect(email).toMatchObject({
    status: "delivered",
    track_opens: true,
    track_clicks: true,
    open_count: 2,
    click_count: 1,
    last_event: { type: "email.clicked", timestamp: email.clicked_at },
  })
  expect(email.opened_at < email.last_opened_at).toBe(true)
  const types = email.timeline.map(({ type }: { type: string }) => type)
  expect(types.slice(-3)).toEqual(["email.opened", "email.opened", "email.clicked"])
  const { timeline: _, html: __, text: ___, headers: ____, ...short } = email
  expect((await one.project.get("/v1/emails")).body.data).toEqual([short])
  const { events } = (await one.project.get(`/v1/emails/${one.id}/events`)).body.data
  expect(events.at(-1)).toMatchObject({
    type: "email.clicked",
    url: "https://shop.test/b",
    actor: "human",
    user_agent: FIREFOX,
    recipient_email: "ann@example.test",
  })
  const posted = await one.project.post(`/v1/emails/${one.id}/tracking`)
  expect(posted.body.data).toEqual(await one.stats())
})

test.each<[string, Record<string, string>]>([
  ["a prefetch", { "sec-purpose": "prefetch;prerender" }],
  ["an older prefetch", { purpose: "prefetch" }],
  ["a prefetch of Firefox", { "x-moz": "prefetch" }],
  ["the proxy of Gmail", { "user-agent": "Mozilla/5.0 (via ggpht.com GoogleImageProxy)" }],
  ["the privacy proxy of Apple Mail", { "user-agent": "Mozilla/5.0" }],
  ["the proxy of Yahoo", { "user-agent": "YahooMailProxy; https://help.yahoo.com/kb/x" }],
  ["a scanner", { "user-agent": "BarracudaCentral scanner" }],
])("%s is a machine: it is counted as one, and tells nobody", async (_, headers) => {
  const one = await letter()
  await load(one.pixel, headers)
  const { opens, recent } = await one.stats()
  expect(opens).toMatchObject({ total: 1, unique: 0, human: 0, machine: 1 })
  expect(recent[0].actor).toBe("machine")
  expect(await one.email()).toMatchObject({ open_count: 0, opened_at: null })
  const { events } = (await one.project.get(`/v1/emails/${one.id}/events`)).body.data
  expect(events.map(({ type }: { type: string }) => type)).not.toContain("email.opened")
})

test("within two seconds of the delivery nobody has read a mail", async () => {
  clock.freeze()
  const one = await letter()
  clock.advance({ seconds: -58.1 })
  await load(one.pixel)
  clock.advance({ seconds: 0.2 })
  await load(one.pixel)
  expect((await one.stats()).opens).toMatchObject({ total: 2, human: 1, machine: 1 })
})

test("three different links within two seconds are a scanner, and so is its picture", async () => {
  const links = ["a", "b", "c"].map((name) => `<a href="https://shop.test/${name}">x</a>`)
  const one = await letter({ html: links.join("") })
  await load(one.pixel)
  for (const at of [0, 1, 2]) await follow(one, at)
  expect(await one.stats()).toMatchObject({
    opens: { total: 1, machine: 1 },
    clicks: { total: 3, human: 0, machine: 3 },
  })
  clock.advance({ seconds: 3 })
  for (const at of [0, 1]) await follow(one, at)
  expect((await one.stats()).clicks).toMatchObject({ total: 5, human: 2, machine: 3 })
})

test("a program without a name is neither", async () => {
  const one = await letter()
  await load(one.pixel, { "user-agent": "" })
  const { opens, recent } = await one.stats()
  expect(opens).toMatchObject({ total: 1, human: 0, machine: 0 })
  expect(recent[0]).toMatchObject({ actor: "unknown", client: null })
})

test("with emit_machine_events machines make events, too", async () => {
  const one = await letter({}, { emit_machine_events: true })
  await load(one.pixel, { purpose: "prefetch" })
  await one.stats()
  const { events } = (await one.project.get(`/v1/emails/${one.id}/events`)).body.data
  expect(events.at(-1)).toMatchObject({ type: "email.opened", actor: "machine", url: null })
})

test("HEAD counts nothing", async () => {
  const one = await letter()
  for (const path of [one.pixel, one.links[0]]) {
    const seen = await service.anybody.call("HEAD", path ?? "", {
      headers: { "user-agent": FIREFOX },
    })
    expect([200, 302]).toContain(seen.status)
  }
  expect(await one.stats()).toMatchObject({ opens: { total: 0 }, clicks: { total: 0 } })
})

test("who opens and who clicks is chosen by the email, then the project, then the account", async () => {
  const nothing = await letter(UNDECIDED)
  expect([nothing.pixel, nothing.links]).toEqual([undefined, []])
  expect(nothing.html).toBe(HTML)
  const own = await letter({ ...UNDECIDED, track_opens: true }, { track_opens: false })
  expect([own.pixel === undefined, own.links.length]).toEqual([false, 0])
  expect(await own.email()).toMatchObject({ track_opens: true, track_clicks: false })
  const clicks = await letter({ ...UNDECIDED, track_opens: false }, { track_clicks: true })
  expect([clicks.pixel, clicks.links.length]).toEqual([undefined, 2])
})

test("an account that says yes is asked where neither email nor project says anything", async () => {
  const project = await service.project()
  const settings = { track_opens: true, track_clicks: true, require_mfa: false }
  const ours = eq(accounts.id, project.account_id)
  await service.store.tx((tx) => tx.update(accounts).set({ settings }).where(ours))
  const html = { html: HTML, ...UNDECIDED }
  const silent = await receive(service, project, html)
  expect([silent.pixel === undefined, silent.links.length]).toEqual([false, 2])
  await project.call("PATCH", "/v1/settings", { body: { track_clicks: false } })
  const chosen = await receive(service, project, html)
  expect([chosen.pixel === undefined, chosen.links]).toEqual([false, []])
  await project.call("PATCH", "/v1/settings", { body: { track_clicks: null } })
  expect((await receive(service, project, html)).links).toHaveLength(2)
})

test("an email that is sent again is tracked on its own", async () => {
  const one = await letter()
  const { id } = (await one.project.post(`/v1/emails/${one.id}/resend`, {})).body
  const handed = await deliverAll(service)
  const raw = Buffer.from(handed.find(({ message_id }) => message_id === id)?.raw ?? "").toString()
  expect(raw).toContain("/t/o/")
  expect(raw).not.toContain(one.pixel?.slice(0, 30) ?? "")
})

test("every attempt sends the same bytes", async () => {
  const project = await service.project()
  const { body } = await project.post("/v1/emails", mail({ html: HTML, track_opens: true }))
  const [first] = await deliverAll(service)
  const kept = (await project.get(`/v1/emails/${body.id}/raw`)).bytes
  expect(Buffer.from(kept).equals(Buffer.from(first?.raw ?? ""))).toBe(true)
})

test("a text is never tracked, and the text beside html stays as it is", async () => {
  const text = "Look: https://shop.test/a"
  const plain = await letter({ text, html: undefined, track_clicks: true })
  expect(plain.text.trim()).toBe(text)
  expect(await plain.email()).toMatchObject({ track_opens: false, track_clicks: false })
  const both = await letter({ text })
  expect(both.text.trim()).toBe(text)
  const made = await letter({ text: undefined })
  expect(made.text).toContain("https://shop.test/b")
  expect(made.text).not.toContain("/t/c/")
  const empty = await letter({ text, html: "" })
  expect(await empty.email()).toMatchObject({ track_opens: false, track_clicks: false })
})

test("a token that is not ours is a picture that counts nothing, or a page that is not there", async () => {
  const one = await letter()
  for (const path of ["/t/o/x", "/t/o/.gif", `/t/o/${"A".repeat(43)}.gif`]) {
    const picture = await load(path)
    expect([picture.status, picture.headers.get("content-type")]).toEqual([200, "image/gif"])
  }
  const page = await load("/t/c/x")
  expect([page.status, page.headers.get("location")]).toEqual([404, null])
  expect(page.headers.get("content-type")).toStartWith("text/html")
  const pixel_as_link = await load(one.pixel?.replace("/t/o/", "/t/c/").replace(".gif", ""))
  expect(pixel_as_link.status).toBe(404)
  const link_as_pixel = await load(one.links[0]?.replace("/t/c/", "/t/o/"))
  expect(link_as_pixel.status).toBe(200)
  expect((await one.stats()).opens.total).toBe(0)
})

test("a stranger's email is not there", async () => {
  const one = await letter()
  const other = await service.project()
  expect((await other.get(`/v1/emails/${one.id}/tracking`)).status).toBe(404)
})

test("of several recipients nobody knows which one it was", async () => {
  const one = await letter({ cc: "ben@example.test" })
  await load(one.pixel)
  await one.stats()
  const { events } = (await one.project.get(`/v1/emails/${one.id}/events`)).body.data
  expect(events.at(-1)).toMatchObject({ type: "email.opened", recipient_email: null })
})
