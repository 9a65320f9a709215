import { expect, test } from "bun:test"
import { onTerminal } from "./belfry"
import { email, FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi, more: object = {}) => ({
  env: { BELFRY_URL: api.url, BELFRY_API_KEY: KEY, TZ: "Europe/Berlin", ...more },
})

const SEND = ["emails", "send", "--to", "ann@mailbox.test", "--subject", "Hi", "--text", "hi"]

const bodyOf = ({ seen }: FakeApi) => seen.at(-1)?.body as Record<string, unknown>

test("emails send --schedule-at sends a moment in UTC, whatever words named it", async () => {
  using api = new FakeApi()
  const scheduled_at = "2027-01-01T08:00:00.000Z"
  api.data("POST /v1/emails", { id: ID, status: "queued", scheduled_at })
  const words = [...SEND, "--schedule-at"]
  const zoned = await belfry([...words, "2099-01-01 9:00"], at(api, { TZ: "America/New_York" }))
  expect(zoned.exit).toBe(0)
  expect(bodyOf(api).scheduled_at).toBe("2099-01-01T14:00:00.000Z")
  await belfry([...words, "2099-07-01T09:00"], at(api)) // the zone of the machine
  expect(bodyOf(api).scheduled_at).toBe("2099-07-01T07:00:00.000Z")
  await belfry([...words, "in 10 min"], at(api))
  const ahead = Date.parse(String(bodyOf(api).scheduled_at)) - Date.now()
  expect(ahead).toBeGreaterThan(500_000)
  expect(ahead).toBeLessThanOrEqual(600_000)
})

test("a time that the clocks show twice is told, and the first is taken", async () => {
  using api = new FakeApi()
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const words = [...SEND, "--schedule-at", "2098-10-26 2:30"]
  const { exit, out } = await onTerminal(words, at(api))
  expect(exit).toBe(0)
  expect(out).toContain("happens twice")
  expect(bodyOf(api).scheduled_at).toBe("2098-10-26T00:30:00.000Z")
})

test("a text that is no time, and one in the past, end with 2 before anything is sent", async () => {
  using api = new FakeApi()
  const refused = await belfry([...SEND, "--schedule-at", "soon"], at(api))
  expect(refused.exit).toBe(2)
  expect(JSON.parse(refused.err).error.message).toBe('--schedule-at: "soon" is not a time')
  const past = await belfry(["emails", "reschedule", ID, "2020-01-01 9:00"], at(api))
  expect(past.exit).toBe(2)
  expect(past.err).toContain("is in the past")
  expect(api.seen).toEqual([])
})

test("emails reschedule sends the new time", async () => {
  using api = new FakeApi()
  api.data(`PATCH /v1/emails/${ID}`, email({ status: "queued" }))
  const { exit } = await belfry(["emails", "reschedule", ID, "2099-01-01T09:00:00+02:00"], at(api))
  expect([exit, bodyOf(api)]).toEqual([0, { scheduled_at: "2099-01-01T07:00:00.000Z" }])
})

test("scheduled cancel wants a word from a person, or --yes", async () => {
  using api = new FakeApi()
  api.data(`DELETE /v1/scheduled/${ID}`, { id: ID, status: "cancelled", deleted: true })
  expect((await belfry(["scheduled", "cancel", ID], at(api))).exit).toBe(2)
  expect(api.seen).toEqual([])
  expect((await belfry(["scheduled", "cancel", ID, "--yes"], at(api))).exit).toBe(0)
})

test("what waits since a restore is shown as held, in the list and alone", async () => {
  using api = new FakeApi()
  const waiting = {
    ...{ id: ID, channel: "email", status: "scheduled", to: "ann@example.test" },
    ...{ scheduled_at: "2099-01-01T08:00:00.000Z", created_at: "2026-11-21T12:00:00.000Z" },
  }
  const held = { ...waiting, status_reason: "It waits until an operator drops held_after_restore." }
  api.data("GET /v1/scheduled", [held, waiting], { has_more: false })
  const listed = await onTerminal(["scheduled", "list"], at(api))
  expect(listed.out).toMatch(/ann@example\.test +held +2099-01-01T08:00:00\.000Z *\r?\n/)
  expect(listed.out).toMatch(/ann@example\.test +scheduled +2099-01-01T08:00:00\.000Z +in /)
  api.data(`GET /v1/scheduled/${ID}`, { ...held, seconds_until_send: 0 })
  const alone = await onTerminal(["scheduled", "get", ID], at(api))
  expect(alone.out).toContain("held_after_restore")
})
