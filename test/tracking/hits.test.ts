import { expect, spyOn, test } from "bun:test"
import { log } from "../../src/core/log"
import { messages } from "../../src/messages/tables"
import { Hits } from "../../src/tracking/hits"
import { messageTracking, trackingLinks } from "../../src/tracking/tables"
import { openTokenOf, TOKEN_PURPOSE, tokenKeys } from "../../src/tracking/tracking-tokens"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { FIREFOX, receive } from "./letters"

const service = await sharedService()
const { store, secrets } = service.parts
const clock = movableClock()

const URLS = ["a", "b", "c", "d"].map((name) => `https://shop.test/${name}`)
const HTML = URLS.map((url) => `<a href="${url}">x</a>`).join("")

async function letters(count: number) {
  const project = await service.project()
  const ids: string[] = []
  for (let made = 0; made < count; made++) {
    ids.push((await receive(service, project, { html: HTML })).id)
  }
  clock.advance({ seconds: 60 })
  const stats = async (id: string) => (await project.get(`/v1/emails/${id}/tracking`)).body.data
  const events = async (id: string) =>
    (await project.get(`/v1/emails/${id}/events`)).body.data.events
  return { ids, stats, events }
}

const request = (agent = FIREFOX, headers = {}) =>
  new Request("http://belfry.test/t", { headers: { "user-agent": agent, ...headers } })

const open = (message_id: string, ip = "203.0.113.1", own = request()) => ({
  ...{ type: "open" as const, message_id, url: null, request: own, ip },
})

test("the counters equal a recount of what came", async () => {
  const { ids, stats } = await letters(3)
  const { hits } = service.parts
  const told = new Map(
    ids.map((id) => [id, { open: 0, machine: 0, clicks: new Map<string, number>() }]),
  )
  for (let at = 0; at < 400; at++) {
    const id = ids[at % ids.length] ?? ""
    const mine = told.get(id)
    const ip = `203.0.113.${at % 7}`
    if (!mine) continue
    if (at % 5 === 0) {
      const url = URLS[at % 4] ?? ""
      hits.add({ ...open(id, ip), type: "click", url })
      mine.clicks.set(url, (mine.clicks.get(url) ?? 0) + 1)
      clock.advance({ seconds: 3 })
    } else {
      const is_machine = at % 4 === 0
      hits.add(open(id, ip, request(FIREFOX, is_machine ? { purpose: "prefetch" } : {})))
      mine.open += 1
      mine.machine += Number(is_machine)
    }
    if (at % 97 === 0) await hits.flush()
  }
  await hits.flush()
  for (const [id, { open: opens, machine, clicks }] of told) {
    const found = await stats(id)
    expect(found.opens).toMatchObject({ total: opens, machine, human: opens - machine })
    const sum = [...clicks.values()].reduce((all, one) => all + one, 0)
    expect(found.clicks).toMatchObject({ total: sum, human: sum })
    const links = Object.fromEntries(
      found.links.map((one: { url: string; total: number }) => [one.url, one.total]),
    )
    expect(links).toEqual(Object.fromEntries(clicks))
    expect(found.recent).toHaveLength(Math.min(50, opens + sum))
    expect(found.opens.unique).toBe(7)
  }
})

test("hits are counted some seconds later, and all of them at a stop", async () => {
  const { ids, stats } = await letters(2)
  const [first = "", second = ""] = ids
  const hits = new Hits({ store, secrets, hasRoom: () => true })
  hits.add(open(first))
  expect((await stats(first)).opens.total).toBe(0)
  while ((await stats(first)).opens.total === 0) await hits.writeRipe()
  hits.add(open(second))
  await hits.flush()
  expect((await stats(second)).opens.total).toBe(1)
})

test("a thousand of one visitor are counted, and make no more than a hundred events", async () => {
  const { ids, stats, events } = await letters(1)
  const [id = ""] = ids
  for (let at = 0; at < 1_000; at++) service.parts.hits.add(open(id, `203.0.113.${at % 20}`))
  await service.parts.hits.flush()
  const { opens, recent } = await stats(id)
  expect(opens).toMatchObject({ total: 1_000, human: 1_000, unique: 20 })
  expect(recent).toHaveLength(50)
  const told = (await events(id)).filter(({ type }: { type: string }) => type === "email.opened")
  expect(told).toHaveLength(100)
})

test("what waits has a limit, and a disk without room is spared", async () => {
  const { ids, stats } = await letters(1)
  const [id = ""] = ids
  const full = new Hits({ store, secrets, hasRoom: () => false })
  full.add(open(id))
  await full.flush()
  const flooded = new Hits({ store, secrets, hasRoom: () => true })
  for (let at = 0; at < 20_500; at++) flooded.add(open(id, `10.0.${at >> 8}.${at & 255}`))
  await flooded.flush()
  expect((await stats(id)).opens.total).toBe(20_000)
})

test("hits that the storage refuses are told to the log, each message with its reason", async () => {
  const error = new Error("the disk is full")
  const refusing = Object.create(store, { tx: { value: () => Promise.reject(error) } })
  const told = spyOn(log, "debug").mockImplementation(() => {})
  try {
    const hits = new Hits({ store: refusing, secrets, hasRoom: () => true })
    hits.add(open(NOBODY))
    await hits.flush()
    const fields = { message_id: NOBODY, error }
    expect(told).toHaveBeenCalledWith("hits of a message were not counted", fields)
  } finally {
    told.mockRestore()
  }
})

test("hits of a message that is gone are left out, and of one that is purged nothing stays", async () => {
  const { ids, stats } = await letters(1)
  const [id = ""] = ids
  service.parts.hits.add(open(NOBODY))
  service.parts.hits.add(open(id))
  service.parts.hits.add({ ...open(id), type: "click", url: URLS[0] ?? "" })
  await service.parts.hits.flush()
  expect((await stats(id)).opens.total).toBe(1)
  await store.tx((tx) => tx.delete(messages))
  expect(await store.read.select().from(messageTracking)).toEqual([])
  expect(await store.read.select().from(trackingLinks)).toEqual([])
})

test("no address of a visitor is stored", async () => {
  const { ids } = await letters(1)
  const [id = ""] = ids
  service.parts.hits.add(open(id, "203.0.113.77"))
  service.parts.hits.add(open(id, "2001:db8:77::1"))
  await service.parts.hits.flush()
  const rows = JSON.stringify([
    await store.read.select().from(messageTracking),
    await store.read.select().from(trackingLinks),
  ])
  expect(rows).not.toContain("203.0.113.77")
  expect(rows).not.toContain("2001:db8:77")
})

test("a token depends on the key", () => {
  const keys = tokenKeys(secrets.mac(TOKEN_PURPOSE, "v1"))
  expect(openTokenOf(keys, NOBODY)).toBe(openTokenOf(keys, NOBODY))
  expect(openTokenOf(tokenKeys(secrets.mac(TOKEN_PURPOSE, "v2")), NOBODY)).not.toBe(
    openTokenOf(keys, NOBODY),
  )
})
