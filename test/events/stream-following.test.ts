import { expect, test } from "bun:test"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { silentSocket } from "../harness/silent-socket"
import { dial, type Frame } from "../harness/socket"
import { notifyEvents } from "./stream-facts"

quietLog()

const PATH = "/v1/events/stream"
const TIMES = { look_ms: 50, ping_ms: 100, silence_ms: 60_000, stuck_ms: 60_000 }

const RECONNECTS = 50
const EVENTS = 2000
const WRITERS = 4

test("every event once and in order, though the connection breaks fifty times under load", async () => {
  await using service = await testService()
  const { url } = service.listen()
  const project = await service.project()
  const { store } = service
  const share = EVENTS / WRITERS
  const writing = Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let n = 0; n < share; n += 5) {
        await notifyEvents(store, project, Array(5).fill("email.sent"), writer * share + n)
        await Bun.sleep(1)
      }
    }),
  )

  const seen: string[] = []
  const numbers: number[] = []
  const take = ({ event }: Frame) => {
    if (!event) return
    seen.push(event.id)
    numbers.push(Number(event.data.n))
  }
  for (let n = 0; n < RECONNECTS || seen.length < EVENTS; n++) {
    using socket = await dial(url, `?after=${seen.at(-1) ?? ""}`, project)
    const enough = seen.length + Math.ceil(Math.random() * (EVENTS / RECONNECTS))
    let taken = 0
    await socket.next(() => {
      while (taken < socket.frames.length) take(socket.frames[taken++] as Frame)
      return seen.length >= Math.min(enough, EVENTS)
    })
    if (n % 2) socket.cut()
  }
  await writing
  expect(new Set(numbers).size).toBe(EVENTS)
  expect(seen).toHaveLength(EVENTS)
  // In the order of the feed: each batch of five stays together and in its order.
  for (let at = 0; at < EVENTS; at += 5) {
    const first = numbers[at] ?? -1
    expect(numbers.slice(at, at + 5)).toEqual([0, 1, 2, 3, 4].map((more) => first + more))
  }
  const page = await project.get("/v1/events?limit=100")
  const ids = page.body.data.map(({ id }: { id: string }) => id)
  expect(seen.slice(0, 100)).toEqual(ids)
})

test("who does not read is closed, and the memory for him is bounded: 1013", async () => {
  await using service = await testService({
    socket_times: { ...TIMES, stuck_ms: 200, parting_ms: 60_000 },
  })
  const { url } = service.listen()
  const project = await service.project()
  using quick = await dial(url, "", project)
  using slow = silentSocket(url, PATH, project.key)
  await slow.opened
  slow.sleep()
  const padding = "x".repeat(100_000)
  for (let n = 0; n < 200; n++)
    await notifyEvents(service.store, project, ["email.sent"], n, padding)
  await quick.next(({ event }) => event?.data.n === 199) // the neighbour is not held up
  await Bun.sleep(1000)
  slow.wake()
  await slow.ended
  expect(slow.code()).toBe(1013)
  expect(slow.bytes()).toBeLessThan(18_000_000) // of 20 MB, and the rest never left the database
})

test("who answers no ping is closed: 4408", async () => {
  await using service = await testService({ socket_times: { ...TIMES, silence_ms: 500 } })
  const { url } = service.listen()
  const project = await service.project()
  using silent = silentSocket(url, PATH, project.key)
  using lively = await dial(url, "", project)
  await silent.ended
  expect(silent.code()).toBe(4408)
  await notifyEvents(service.store, project, ["email.sent"])
  await lively.next(({ event }) => event !== undefined)
})

test("when the server stops, connections end at once: 1012", async () => {
  await using service = await testService()
  const listener = service.listen()
  const socket = await dial(listener.url, "?forward=true", await service.project())
  const stopped = listener.stop()
  expect(await socket.closed).toMatchObject({ code: 1012 })
  await stopped
})
