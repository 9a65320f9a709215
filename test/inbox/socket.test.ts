import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { secondsFromNow } from "../../src/core/time"
import { markOne } from "../../src/inbox/inbox"
import { markAll } from "../../src/inbox/mark-all"
import * as tickets from "../../src/inbox/tickets"
import { until } from "../harness/hooks"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { silentSocket } from "../harness/silent-socket"
import type { TestSocket } from "../harness/socket"
import { enter, knock, numbered, numbers, PATH, PROTOCOL, person, typed } from "./inbox-dial"

const times = { look_ms: 50, ping_ms: 200, silence_ms: 60_000, stuck_ms: 60_000 }
const service = await sharedService({ socket_times: times })
const { url } = service.listen()
const project = await service.project()

const code = async ({ closed }: TestSocket) => (await closed).code

describe("a socket of an inbox", () => {
  test("says where the inbox is, then every change with its totals", async () => {
    const ann = await person(service, project)
    const first = await ann.send("one")
    using socket = await enter(url, ann.token)
    expect(socket.protocol).toBe("svc.inbox.v1")
    expect(socket.frames).toEqual([
      {
        ...{ type: "ready", session: expect.any(String), subscriber_id: ann.subscriber_id },
        ...{ last_seq: 1, counts: { unread: 1, unseen: 1, total: 1 }, heartbeat: 25 },
      },
    ])
    const second = await ann.send("two", { metadata: { order: "A" } })
    await numbered(socket, 2)
    await ann.mark(first, "read")
    await numbered(socket, 3)
    await ann.remove(second)
    await numbered(socket, 4)
    await socket.next(({ total }) => total === 1)
    expect(socket.frames.slice(1)).toMatchObject([
      { type: "message.created", seq: 2, message: { id: second, seq: 2, title: "two" } },
      { type: "counts", unread: 2, unseen: 2, total: 2 },
      { type: "message.updated", seq: 3, message: { id: first, read_at: expect.any(String) } },
      { type: "counts", unread: 1, unseen: 1, total: 2 },
      { type: "message.deleted", seq: 4, id: second },
      { type: "counts", unread: 0, unseen: 0, total: 1 },
    ])
    expect(JSON.stringify(socket.frames)).not.toContain("metadata")
  })

  test("tells all sockets of its subscriber the same, and others nothing", async () => {
    const [ann, bob] = [await person(service, project), await person(service, project)]
    const sockets = await Promise.all([enter(url, ann.token), enter(url, ann.token)])
    using other = await enter(url, bob.token)
    for (const title of ["a", "b", "c"]) await ann.send(title)
    await ann.mark(await ann.send("d", { collapse_key: "k" }), "seen")
    await ann.send("e", { collapse_key: "k" })
    for (const socket of sockets) {
      await numbered(socket, 6)
      await typed(socket, "message.updated")
      expect(numbers(socket)).toEqual([1, 2, 3, 4, 5, 6])
    }
    const [one, two] = sockets.map(({ frames }) => frames.filter(({ seq }) => seq))
    expect(two).toEqual(one as never)
    expect(one?.at(-1)).toMatchObject({ message: { title: "e", seen_at: null } })
    await bob.send("own")
    await numbered(other, 1)
    expect(numbers(other)).toEqual([1])
    for (const socket of sockets) socket.cut()
  })

  test("tells a change of all messages with one frame and what it concerned", async () => {
    const ann = await person(service, project)
    using socket = await enter(url, ann.token)
    await ann.send("one", { category: "billing" })
    await ann.send("two")
    await markAll(service.store, ann.owner, "read", { category: "billing" })
    await numbered(socket, 3)
    socket.send({ type: "mark", id: "*", as: "archived", ref: "all" })
    await numbered(socket, 4)
    await socket.next(({ total }) => total === 0)
    expect(socket.frames.filter(({ upto_seq }) => upto_seq)).toEqual([
      { type: "messages.read", upto_seq: 3, category: "billing" },
      { type: "messages.archived", upto_seq: 4 },
    ])
    expect(await typed(socket, "ack")).toEqual({ type: "ack", ref: "all" })
  })

  test("marks messages of its own inbox, one after the other", async () => {
    const [ann, bob] = [await person(service, project), await person(service, project)]
    using socket = await enter(url, ann.token)
    const id = await ann.send("mine")
    const foreign = await bob.send("his")
    for (const as of ["seen", "read", "unread", "archived", "unarchived"])
      socket.send({ type: "mark", id, as, ref: as })
    socket.send({ type: "mark", id: foreign, as: "read", ref: "foreign" })
    socket.send({ type: "mark", id: newId(), as: "read", ref: "nobody" })
    socket.send({ type: "mark", id: "x", as: "read", ref: "no id" })
    socket.send({ type: "mark", id, as: "gone", ref: "no mark" })
    socket.send({ type: "mark", id: "*", as: "unread", ref: "all" })
    await socket.next(({ ref }) => ref === "all")
    await numbered(socket, 6)
    const answers = socket.frames.filter(({ ref }) => ref)
    expect(answers.map(({ type, ref, code = "" }) => [type, ref, code])).toEqual([
      ...["seen", "read", "unread", "archived", "unarchived"].map((ref) => ["ack", ref, ""]),
      ...["foreign", "nobody", "no id"].map((ref) => ["error", ref, "not_found"]),
      ...["no mark", "all"].map((ref) => ["error", ref, "validation_error"]),
    ])
    const same = answers.slice(5, 8).map(({ message }) => message)
    expect(new Set(same).size).toBe(1)
    expect(numbers(socket)).toEqual([1, 2, 3, 4, 5, 6])
  })

  test("answers a ping, sends its own, and closes on what is no frame", async () => {
    const { token } = await person(service, project)
    using socket = await enter(url, token)
    socket.send({ type: "ping" })
    await typed(socket, "pong")
    await typed(socket, "ping")
    const wrong = [
      "no JSON",
      "[]",
      { type: "unknown" },
      { token },
      new Uint8Array([123, 125]),
      { type: "auth", token: 7 },
      { type: "auth", token, after_seq: -1 },
      { type: "resume", after_seq: "3" },
      { type: "mark", id: "*", as: 7 },
      { type: "mark", id: 7, as: "read" },
      { type: "ping", more: "x".repeat(16 * 1024) },
    ]
    for (const frame of wrong) {
      const bad = await enter(url, token)
      bad.send(frame)
      expect(await code(bad)).toBe(4400)
    }
    const twice = await enter(url, token)
    twice.send({ type: "auth", token })
    expect(await code(twice)).toBe(4400)
    const largest = { type: "ping", more: "x".repeat(16 * 1024 - 25) }
    expect(JSON.stringify(largest).length).toBe(16 * 1024)
    using good = await enter(url, token)
    good.send(largest)
    await typed(good, "pong")
  })

  test("closes a client that says too much in a second", async () => {
    const { token } = await person(service, project)
    const loud = await enter(url, token)
    for (let n = 0; n < 41; n++) loud.send({ type: "pong" })
    expect(await code(loud)).toBe(4429)
  })

  test("closes a client that does not read, and holds up no other one", async () => {
    const ann = await person(service, project)
    const ticket = await service.store.tx((tx) =>
      tickets.issue(tx, { ...ann.owner, token_ends_at: secondsFromNow(3600) }),
    )
    using slow = silentSocket(url, `${PATH}?ticket=${ticket}`, "", PROTOCOL)
    using quick = await enter(url, ann.token)
    const id = await ann.send("long", { data: { text: "x".repeat(16_000) } })
    await until(() => slow.texts().some((text) => text.includes(id)))
    slow.sleep()
    const most = 1500 // of 16 KB each, which no buffer holds
    await service.store.tx(async (tx) => {
      for (let n = 0; n < most; n++)
        await markOne(tx, ann.owner, id, n % 2 === 0 ? "read" : "unread")
    })
    await numbered(quick, most + 1)
    expect(numbers(quick)).toEqual(Array.from({ length: most + 1 }, (_, n) => n + 1))
    slow.wake()
    await slow.ended
    expect(slow.code()).toBe(1013)
  })

  test("closes a client that is silent", async () => {
    await using own = await testService({ socket_times: { ...times, silence_ms: 500 } })
    const { url: there } = own.listen()
    using silent = silentSocket(there, PATH, "", PROTOCOL)
    await silent.ended
    expect(silent.code()).toBe(4408)
  })

  test("ends with 1012 when the server stops", async () => {
    const listener = service.listen()
    const { token } = await person(service, project)
    const [in_, out] = [await enter(listener.url, token), await knock(listener.url)]
    await listener.stop()
    expect([await code(in_), await code(out)]).toEqual([1012, 1012])
  })
})
