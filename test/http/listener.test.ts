import { expect, spyOn, test } from "bun:test"
import { Elysia } from "elysia"
import { listen, RecentTraffic } from "../../src/http/listener"
import { SOCKET_TIMES, Socket } from "../../src/http/sockets"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"

quietLog()

const READERS = `${import.meta.dir}/../harness/late-readers.ts`
const FRAME = { type: "event", padding: "x".repeat(100_000) }

/** Says more than fits on the way to a reader who sleeps, and soon says goodbye. */
const talkative = {
  begin: async (socket: Socket) => {
    let has_room = true
    while (has_room) {
      const sent = socket.send(FRAME).then(() => true)
      has_room = await Promise.race([sent, Bun.sleep(30).then(() => false)])
    }
    socket.close("slow")
  },
}

test("who reads the goodbye late still finds all that was before it", async () => {
  const app = new Elysia().get("/", ({ request, server }) => {
    const options = { conversation: talkative, project_id: "", stillAdmitted: async () => true }
    const times = { ...SOCKET_TIMES, parting_ms: 60_000 }
    server?.upgrade(request, { data: new Socket(options, times, { forget() {} }) })
  })
  const listener = listen(app as unknown as Elysia, {
    host: "127.0.0.1",
    port: 0,
    idle_seconds: 60,
  })
  // The runtime cuts off who is idle by a clock of four seconds: it strikes while they sleep.
  const readers = Bun.spawn([process.execPath, READERS, listener.url], { stdout: "pipe" })
  expect(await new Response(readers.stdout).json()).toEqual(Array(12).fill(1013))
  await listener.stop()
})

test("a port that another server has is refused", async () => {
  const app = new Elysia() as unknown as Elysia
  const options = { host: "127.0.0.1", idle_seconds: 60 }
  const first = listen(app, { ...options, port: 0 })
  expect(() => listen(app, { ...options, port: first.port })).toThrow("in use")
  await first.stop()
})

test("a request counts as recent for 20 ms, and none before the first", () => {
  const time = spyOn(performance, "now")
  try {
    time.mockReturnValue(1000)
    const traffic = new RecentTraffic()
    expect(traffic.isRecent()).toBe(false)
    traffic.note()
    time.mockReturnValue(1019)
    expect(traffic.isRecent()).toBe(true)
    time.mockReturnValue(1020)
    expect(traffic.isRecent()).toBe(false)
  } finally {
    time.mockRestore()
  }
})

test("each request is noted when it comes, not when it is answered", async () => {
  await using service = await testService()
  const { get } = await service.project()
  const noted = spyOn(service.parts.traffic, "note")
  const answer = get("/v1/emails")
  expect(noted).toHaveBeenCalledTimes(1)
  expect((await answer).status).toBe(200)
})
