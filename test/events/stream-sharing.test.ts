import { expect, test } from "bun:test"
import { notifyWatchers } from "../../src/messages/status-changes"
import { quietLog } from "../harness/quiet"
import { type TestProject, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { silentSocket } from "../harness/silent-socket"
import { dial, type Frame, type TestSocket } from "../harness/socket"
import { notifyEvents } from "./stream-facts"

quietLog()

const service = await sharedService()
const { url } = service.listen()

const numbersOf = (frames: readonly Frame[]) => frames.flatMap(({ event }) => event?.data.n ?? [])

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

const hears = (socket: TestSocket, number: number) =>
  socket.next(({ event }) => event?.data.n === number)

const EVENTS = 1200
const STEP = 20
const TURNS = ["email.sent", "email.delivered", "sms.sent"]

/** Numbered events of three types in turns, some in each transaction. */
async function write(project: TestProject, from: number, to: number) {
  for (let n = from; n < to; n += STEP) {
    const types = upTo(STEP).map((at) => TURNS[(n + at) % TURNS.length] ?? "")
    await notifyEvents(service.store, project, types, n)
  }
}

test("connections of one filter hear each event once and in order, whenever they came", async () => {
  const project = await service.project()
  const filters = ["", "types=email.*", "types=email.sent,sms.sent", "types=sms.*"]
  const chosen = [[0, 1, 2], [0, 1], [0, 2], [2]]
  const dialAll = (after = "") =>
    Promise.all(
      upTo(12).map(async (at) => {
        const socket = await dial(url, `?${filters[at % 4]}${after}`, project)
        return { socket, turns: chosen[at % 4] ?? [] }
      }),
    )
  const early = await dialAll()
  const writing = write(project, 0, EVENTS)
  await Promise.all(early.map(({ socket }) => socket.next(({ event }) => event !== undefined)))
  const half = await early[0]?.socket.next(({ event }) => Number(event?.data.n) >= EVENTS / 3)
  const late = await dialAll(`&after=${half?.event?.id}`)
  const oldest = await dialAll("&after=")
  await writing
  const told = await notifyEvents(service.store, project, TURNS, EVENTS)
  expect(told).toHaveLength(TURNS.length)
  for (const [from, sockets] of [
    [0, early],
    [Number(half?.event?.data.n) + 1, late],
    [0, oldest],
  ] as const) {
    for (const { socket, turns } of sockets) {
      const expected = upTo(EVENTS + TURNS.length).filter((n) => n >= from && turns.includes(n % 3))
      await hears(socket, expected.at(-1) ?? -1)
      expect(numbersOf(socket.frames)).toEqual(expected)
      socket[Symbol.dispose]()
    }
  }
})

test("who reads too slowly is let go, resumes without a loss, and holds nobody up", async () => {
  await using slower = await testService({
    socket_times: {
      look_ms: 50,
      ping_ms: 60_000,
      silence_ms: 60_000,
      stuck_ms: 1500, // those who read may wait for the processor so long
      parting_ms: 60_000,
    },
  })
  const { url } = slower.listen()
  const project = await slower.project()
  const others = await Promise.all(upTo(2).map(() => dial(url, "", project)))
  using slow = silentSocket(url, "/v1/events/stream", project.key)
  await slow.opened
  await notifyEvents(slower.store, project, ["email.sent"], 0)
  slow.sleep()
  const padding = "x".repeat(100_000)
  const count = 200
  for (let n = 1; n < count; n++)
    await notifyEvents(slower.store, project, ["email.sent"], n, padding)
  for (const socket of others) {
    await hears(socket, count - 1)
    expect(numbersOf(socket.frames)).toEqual(upTo(count))
    socket[Symbol.dispose]()
  }
  await Bun.sleep(4000) // the server, in this process, has looked many times meanwhile
  slow.wake()
  await slow.ended
  expect(slow.code()).toBe(1013)
  const heard = slow.texts().map((text) => JSON.parse(text) as Frame)
  const last = heard.findLast(({ event }) => event)?.event?.id
  using again = await dial(url, `?after=${last ?? ""}`, project)
  await hears(again, count - 1)
  expect([...numbersOf(heard), ...numbersOf(again.frames)]).toEqual(upTo(count))
})

test("every connection gets each change of a message, in order", async () => {
  const project = await service.project()
  const sockets = await Promise.all(upTo(4).map(() => dial(url, "", project)))
  for (const n of upTo(500)) {
    notifyWatchers(service.store.read, {
      id: `m${n}`,
      project_id: project.project_id,
      channel: "email",
      status: "sent",
      status_reason: null,
      recipient: "ann@mailbox.test",
      at: "2026-11-23T10:30:00.000Z",
      event_type: "email.sent",
      elapsed_ms: n,
      next_attempt_at: null,
    })
  }
  for (const socket of sockets) {
    await socket.next(({ message }) => (message as { elapsed_ms?: number })?.elapsed_ms === 499)
    const ids = socket.frames.map(({ message }) => (message as { id: string }).id)
    expect(ids).toEqual(upTo(500).map((n) => `m${n}`))
    socket[Symbol.dispose]()
  }
})
