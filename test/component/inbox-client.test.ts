import { afterEach, beforeEach, describe, expect, mock, spyOn, test } from "bun:test"
import { InboxClient } from "../../src/component/inbox-client"
import type { InboxMessage } from "../../src/component/inbox-message"
import { FakeInbox } from "./fake-inbox"

let server: FakeInbox
let client: InboxClient
const clients: InboxClient[] = []

beforeEach(() => {
  server = new FakeInbox()
  // The shortest of all pauses.
  spyOn(Math, "random").mockReturnValue(0)
  client = follower()
})

afterEach(async () => {
  for (const one of clients.splice(0)) one.stop()
  await server.stop()
  mock.restore()
})

function follower(token: string | (() => string | Promise<string>) = "first"): InboxClient {
  const one = new InboxClient({ url: server.url, token })
  clients.push(one)
  return one
}

/** Resolves at the first change after which it holds. */
function until(holds: () => boolean, of = client): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = () => holds() && resolve()
  of.addEventListener("change", look)
  look()
  return promise
}

const live = (of = client) => until(() => of.state === "live", of)

/** The details of an event, as they come. */
function heard<Detail>(name: string, of = client): Detail[] {
  const all: Detail[] = []
  of.addEventListener(name, (event) => void all.push((event as CustomEvent<Detail>).detail))
  return all
}

const idsOf = (messages: readonly InboxMessage[]) => messages.map(({ id }) => id)
const isAsServer = (of = client) =>
  JSON.stringify([of.messages, of.counts]) === JSON.stringify([server.list("all"), server.counts()])
const online = () => (globalThis as unknown as EventTarget).dispatchEvent(new Event("online"))

describe("the connection", () => {
  test("begins with a page, and goes on from it without a token in an address", async () => {
    server.create({ category: "billing" })
    await client.start()
    await live()
    expect(idsOf(client.messages)).toEqual(["000001"])
    expect(client.counts).toEqual({ unread: 1, unseen: 1, total: 1, by_category: { billing: 1 } })
    expect(server.asked.toSorted()).toEqual(["GET ", "GET /unread-count", "auth 1"])
  })

  test("misses nothing and hears nothing twice, wherever it is cut", async () => {
    const others = [follower(), follower()]
    const all = [client, ...others]
    const news = all.map((one) => heard<{ message: InboxMessage }>("message", one))
    await Promise.all(all.map((one) => one.start()))
    await Promise.all(all.map((one) => live(one)))
    const created: string[] = []
    for (const cut_after of [0, 1, 2, 3, 5]) {
      server.cut_after = cut_after
      for (let at = 0; at < 12; at++) {
        const { id } = server.create({ category: at % 2 ? "billing" : null })
        created.push(id)
        if (at % 3 === 0) server.mark(id, "read")
        if (at === 6) server.remove(id)
        if (at === 9) server.markAll("read", { category: "billing" })
        await Bun.sleep(0)
      }
      server.cut()
      server.cut_after = Number.POSITIVE_INFINITY
      await Promise.all(all.map((one) => until(() => one.state === "live" && isHeard(one), one)))
    }
    for (const list of news) expect(idsOf(list.map(({ message }) => message))).toEqual(created)
    const seqs = server.changes.length
    expect(server.seq).toBe(seqs)
  })

  /** But for the time of marks, which a frame for many does not tell. */
  const isHeard = (one: InboxClient) =>
    JSON.stringify(one.messages.map(({ id, read_at }) => [id, !!read_at])) ===
      JSON.stringify(
        server
          .list("all")
          .slice(0, one.messages.length)
          .map(({ id, read_at }) => [id, !!read_at]),
      ) && one.counts.unread === server.counts().unread

  test("applies a change once, in the order of seq, whatever comes again", async () => {
    const { id } = server.create()
    await client.start()
    await live()
    const news = heard("message")
    server.mark(id, "read")
    server.create()
    await until(() => client.messages.length === 2)
    for (const frame of server.changes) server.tell(frame)
    server.create()
    await until(() => client.messages.length === 3)
    expect(idsOf(client.messages)).toEqual(["000003", "000002", "000001"])
    expect(client.messages.map(({ read_at }) => read_at !== null)).toEqual([false, false, true])
    expect(news.length).toBe(2)
  })

  test("a server that knows no more what was missed makes it load again", async () => {
    await client.start()
    await live()
    const news = heard<{ message: InboxMessage }>("message")
    server.is_resync = true
    server.cut()
    server.create()
    await until(() => isAsServer() && client.state === "live")
    expect(idsOf(news.map(({ message }) => message))).toEqual(["000001"])
  })

  test("what comes while a page is on its way is in the view, too", async () => {
    await client.start()
    await live()
    server.refuse = (name) => {
      // After the sending of the request, and before its answer.
      if (name === "GET ") {
        server.refuse = () => undefined
        queueMicrotask(() => server.create({ category: "billing" }))
      }
      return undefined
    }
    await client.show({ category: "billing" })
    await until(() => client.messages.length === 1)
    server.create({ category: "other" })
    await until(() => client.counts.total === 2)
    expect(client.messages.length).toBe(1)
  })

  test("a line on which nothing is said is replaced", async () => {
    server.heartbeat = 0.01
    await client.start()
    await live()
    while (server.asked.filter((name) => name.startsWith("auth")).length < 2) await Bun.sleep(1)
    server.heartbeat = 25
    await live()
  })
})

describe("the token", () => {
  test("is asked for again when it is about to end, and once when it is refused", async () => {
    const given = ["first", "second", "third"]
    client = follower(() => given.shift() ?? "none")
    await client.start()
    await live()
    server.tokens.add("second")
    server.say({ type: "token.expiring", in: 60 })
    await answered("refresh second")
    server.tokens.clear()
    server.tokens.add("third")
    for (const socket of server.sockets) socket.close(4401)
    server.create()
    await until(() => client.messages.length === 1)
    expect(given).toEqual([])
    server.tokens.clear()
    for (const socket of server.sockets) socket.close(4401)
    await until(() => client.state === "ended")
    expect(server.asked.filter((name) => name.startsWith("auth"))).toHaveLength(3)
  })

  test("that the page is slow to renew is no line that lives", async () => {
    let slow: Promise<string> | undefined
    client = follower(() => slow ?? "first")
    await client.start()
    await live()
    const { promise, resolve } = Promise.withResolvers<string>()
    slow = promise
    server.tokens.add("second")
    for (const socket of server.sockets) socket.close(4401)
    await until(() => client.state === "connecting")
    resolve("second")
    await live()
  })

  test("that cannot be renewed ends the inbox, and says so", async () => {
    const problems = heard<{ code: string }>("problem")
    server.tokens.clear()
    await client.start()
    expect([client.state, problems.map(({ code }) => code)]).toEqual(["ended", ["unauthorized"]])
    expect(server.asked.every((name) => name.startsWith("GET"))).toBe(true)
  })

  test("a blocked subscriber is left alone", async () => {
    server.closing = () => 4403
    await client.start()
    await until(() => client.state === "ended")
    expect(server.asked.filter((name) => name.startsWith("auth"))).toHaveLength(1)
  })
})

async function answered(name: string): Promise<void> {
  while (!server.asked.includes(name)) await Bun.sleep(1)
}

describe("where sockets fail", () => {
  test("it polls, and comes back to a socket", async () => {
    server.closing = () => 1013
    await client.start()
    await until(() => client.state === "polling")
    const news = heard("message")
    server.create()
    online()
    await until(() => isAsServer())
    expect(news.length).toBe(1)
    server.closing = () => undefined
    online()
    await live()
    server.create()
    await until(() => client.messages.length === 2)
  })

  test("it polls on while the server refuses, and is complete afterwards", async () => {
    await client.start()
    await live()
    server.closing = () => 1013
    server.refuse = () => 503
    server.cut()
    await until(() => client.state === "polling")
    server.create()
    server.refuse = () => undefined
    server.closing = () => undefined
    online()
    await until(() => isAsServer() && client.state === "live")
  })

  test("one of too many sockets does not push the others out", async () => {
    server.closing = () => 4429
    await client.start()
    await until(() => client.state === "polling")
    server.create()
    online()
    await until(() => isAsServer())
  })
})

describe("changes", () => {
  beforeEach(async () => {
    for (const category of ["billing", "billing", null]) server.create({ category })
    await client.start()
    await live()
  })

  test("show at once, and stay when the server has them", async () => {
    const done = client.mark("000001", "read")
    expect(client.counts).toEqual({ unread: 2, unseen: 2, total: 3, by_category: { billing: 1 } })
    await done
    await until(() => client.messages.at(-1)?.seq === 4)
    expect(client.counts).toEqual(server.counts())
    const all = client.mark("*", "read", { category: "billing" })
    expect(client.counts).toMatchObject({ unread: 1, by_category: {} })
    await all
    await until(() => client.counts.unread === 1)
    await client.mark("*", "read")
    await until(() => client.counts.unread === 0)
    expect(client.messages.every(({ read_at }) => read_at)).toBe(true)
  })

  test.each([
    ["a mark", () => client.mark("000001", "archived")],
    ["a mark of all", () => client.mark("*", "read")],
    ["a snooze", () => client.snooze("000001", "2027-01-01T00:00:00.000Z")],
    ["a removal", () => client.remove("000001")],
  ])("%s is taken back where the server refuses, and other changes stay", async (_, change) => {
    const problems = heard("problem")
    server.refuse = () => 422
    const refused = change()
    expect(isAsServer()).toBe(false)
    server.create()
    expect(await refused.catch(({ code }) => code)).toBe("refused")
    await until(() => isAsServer())
    expect(problems).toEqual([{ code: "refused", message: "No." }])
  })

  test("what is read in one place is read in another, and leaves the view of what is unread", async () => {
    const other = follower()
    await other.show({ filter: "unread" })
    await other.start()
    await live(other)
    await client.mark("000002", "read")
    await until(() => other.messages.length === 2, other)
    await client.remove("000001")
    await until(() => other.messages.length === 1 && other.counts.total === 2, other)
    expect(other.counts).toEqual(server.counts())
  })

  test("opening reads, and a page may do it in its own way", async () => {
    const opened = heard<{ message: InboxMessage }>("opened")
    expect(client.open("000003")).toBe(true)
    client.addEventListener("opened", (event) => event.preventDefault())
    expect(client.open("000003")).toBe(false)
    await until(() => client.counts.unread === 2)
    expect(opened.map(({ message }) => message.id)).toEqual(["000003", "000003"])
    const actions = heard<{ key: string }>("action")
    await client.act("000003", "accept")
    expect(actions).toMatchObject([{ key: "accept", message: { id: "000003" } }])
  })

  test("older pages come one by one, and what is older than they is not mixed in", async () => {
    for (let at = 0; at < 60; at++) server.create()
    await client.show({})
    expect([client.messages.length, client.hasMore]).toEqual([25, true])
    server.mark("000002", "read")
    await until(() => client.counts.unread === 62)
    expect(client.messages.length).toBe(25)
    await client.more()
    await client.more()
    expect([client.messages.length, client.hasMore]).toEqual([63, false])
    await until(() => isAsServer())
  })
})
