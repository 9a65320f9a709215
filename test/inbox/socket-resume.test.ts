import { describe, expect, test } from "bun:test"
import { and, eq, lte } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { InboxHub } from "../../src/inbox/inbox-hub"
import { followInboxes, InboxLedger } from "../../src/inbox/ledger"
import { entriesForUpdate } from "../../src/inbox/marks"
import { inboxChanges, inboxes } from "../../src/inbox/tables"
import * as tickets from "../../src/inbox/tickets"
import { sharedService } from "../harness/shared-service"
import { enter, knock, numbered, numbers, person, typed } from "./inbox-dial"
import { toldSocket } from "./told-socket"

const service = await sharedService()
const { store } = service
const { url } = service.listen()
const project = await service.project()

const upTo = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, n) => first + n)

describe("a client that comes back", () => {
  test("is told each change that it missed once, in order, and then what happens", async () => {
    const ann = await person(service, project)
    const ids: string[] = []
    for (const title of ["a", "b", "c"]) ids.push(await ann.send(title))
    const [first = "", second = "", third = ""] = ids
    await ann.mark(first, "read")
    await ann.remove(second)
    await ann.mark(third, "archived")
    using socket = await enter(url, ann.token, 1)
    await numbered(socket, 6)
    await ann.send("live")
    await numbered(socket, 7)
    expect(socket.frames.filter(({ type }) => type !== "counts")).toMatchObject([
      { type: "ready", last_seq: 6, counts: { unread: 0, unseen: 0, total: 1 } },
      { type: "message.deleted", seq: 2, id: second }, // as it is gone by now
      { type: "message.created", seq: 3, message: { id: third, seq: 6 } },
      { type: "message.updated", seq: 4, message: { id: first } },
      { type: "message.deleted", seq: 5, id: second },
      { type: "message.updated", seq: 6, message: { archived_at: expect.any(String) } },
      ...[
        { type: "message.created", seq: 7 },
        { type: "counts", unread: 1 },
      ].slice(0, 1),
    ])
  })

  test("misses nothing over many cuts at any moment, also in a long log", async () => {
    const ann = await person(service, project)
    const seen: number[] = []
    const sent = (async () => {
      for (let n = 0; n < 300; n++) await ann.send(`${n}`)
    })()
    for (let round = 0; seen.length < 300; round++) {
      const socket = await knock(url)
      socket.send({ type: "auth", token: ann.token, after_seq: seen.length })
      await numbered(socket, Math.min(300, seen.length + 1 + ((round * 37) % 120)))
      socket.cut()
      seen.push(...numbers(socket))
    }
    await sent
    expect(seen).toEqual(upTo(1, 300))
  })

  test("says so after a ticket, and hears nothing before but what came after `ready`", async () => {
    const ann = await person(service, project)
    for (const title of ["a", "b"]) await ann.send(title)
    const ticket = () =>
      store.tx((tx) => tickets.issue(tx, { ...ann.owner, token_ends_at: secondsFromNow(600) }))
    using socket = await knock(url, `?ticket=${await ticket()}`)
    await typed(socket, "ready")
    await ann.send("c")
    socket.send({ type: "resume", after_seq: 1 })
    await numbered(socket, 3)
    expect(numbers(socket)).toEqual([2, 3])
    using late = await knock(url, `?ticket=${await ticket()}`)
    await typed(late, "ready")
    await ann.send("d")
    await numbered(late, 4)
    late.send({ type: "resume", after_seq: 1 })
    await numbered(late, 3)
    late.send({ type: "resume", after_seq: 0 })
    late.send({ type: "resume", after_seq: 1 })
    late.send({ type: "mark", id: "none", as: "read", ref: "end" })
    await typed(late, "error")
    await ann.send("e")
    await numbered(late, 5)
    expect(numbers(late)).toEqual([4, 2, 3, 1, 5]) // each once: it was told by itself before
  })

  test("reads the inbox anew where the log does not go back so far, or never was there", async () => {
    const ann = await person(service, project)
    for (const title of ["a", "b", "c"]) await ann.send(title)
    const old = and(eq(inboxChanges.subscriber_id, ann.subscriber_id), lte(inboxChanges.seq, 2))
    await store.tx((tx) => tx.delete(inboxChanges).where(old))
    for (const after_seq of [0, 1, 99]) {
      using socket = await enter(url, ann.token, after_seq)
      await typed(socket, "resync")
      expect(numbers(socket)).toEqual([])
    }
    using near = await enter(url, ann.token, 2)
    using far = await enter(url, ann.token, 0)
    await ann.send("d")
    await Promise.all([numbered(near, 4), numbered(far, 4)])
    expect([numbers(near), numbers(far)]).toEqual([[3, 4], [4]])
  })
})

test("a client of an inbox that was removed meanwhile is told to read anew, once", async () => {
  const ann = await person(service, project)
  for (const title of ["a", "b"]) await ann.send(title)
  using witness = await enter(url, ann.token)
  await dropMessages(ann.subscriber_id)
  using socket = await enter(url, ann.token, 0)
  await typed(socket, "resync")
  socket.send({ type: "ping" })
  await typed(socket, "pong")
  expect(socket.frames.map(({ type }) => type)).toEqual(["ready", "resync", "pong"])
  expect(numbers(witness)).toEqual([])
})

async function dropMessages(subscriber_id: string) {
  await store.tx(async (tx) => {
    await tx.delete(inboxChanges).where(eq(inboxChanges.subscriber_id, subscriber_id))
    await tx.delete(inboxes).where(eq(inboxes.id, subscriber_id))
  })
}

test("totals that changed without a number and a notification are told by the next look", async () => {
  const ann = await person(service, project)
  const id = await ann.send("a")
  const deaf = new InboxHub(store)
  const socket = toldSocket()
  socket.is_live = true
  await deaf.join(socket, ann.subscriber_id)
  await store.tx(async (tx) => {
    const ledger = await InboxLedger.open(tx, project.project_id, [ann.subscriber_id])
    const [entry] = await entriesForUpdate(tx, [id])
    ledger.recount(ann.subscriber_id)
    if (entry) ledger.within(entry, { read_at: now() }, entry.seq)
    await ledger.close()
  })
  await deaf.look()
  await socket.inbox?.reading
  await deaf.look()
  expect(socket.frames).toEqual([{ type: "counts", unread: 0, unseen: 1, total: 1 }])
})

test("a node that ends between a commit and its frame leaves the rest to the next one", async () => {
  const ann = await person(service, project)
  const dying = new InboxHub(store)
  const stop = dying.start()
  const socket = toldSocket()
  socket.is_live = true
  await dying.join(socket, ann.subscriber_id)
  await ann.send("told")
  expect(socket.numbers()).toEqual([1])
  followInboxes(store.read, stop) // nothing that is committed now is told any more
  stop()
  await ann.send("committed")
  expect(socket.numbers()).toEqual([1])
  const next = new InboxHub(store)
  const again = toldSocket()
  const inbox = await next.join(again, ann.subscriber_id)
  expect(inbox.sent_seq).toBe(2)
  using client = await enter(url, ann.token, 1)
  await numbered(client, 2)
  expect(numbers(client)).toEqual([2])
})
