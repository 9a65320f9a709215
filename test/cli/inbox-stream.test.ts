import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test"
import { type Client, openClient } from "../../cli/lib/client"
import { exits, Failure } from "../../cli/lib/errors"
import { type InboxFrame, InboxStream } from "../../cli/lib/inbox-stream"
import { frameLine } from "../../cli/lib/inbox-text"
import { NOBODY } from "../../cli/lib/profiles"
import { painter } from "../../cli/lib/terminal"
import { FakeInbox } from "../component/fake-inbox"

let server: FakeInbox
let tokens: (string | Failure)[]
const streams: InboxStream[] = []

beforeEach(() => {
  server = new FakeInbox()
  tokens = ["first"]
  spyOn(Math, "random").mockReturnValue(0)
})

afterEach(async () => {
  mock.restore()
  for (const stream of streams.splice(0)) stream.close()
  await server.stop()
})

/** Gives the tokens of the test, the last one again and again. */
function giver(): Client {
  const call = async () => {
    const [token] = tokens.length > 1 ? tokens.splice(0, 1) : tokens
    if (token instanceof Failure) throw token
    return { data: { token } }
  }
  return { url: server.url, call } as unknown as Client
}

function follow() {
  const frames: InboxFrame[] = []
  const waiting = new Set<() => void>()
  const options = { timeout: 5000, dry_run: false, anonymous: true }
  const wire = openClient({ ...NOBODY, url: server.url, api_key: null }, options)
  const stream = new InboxStream(
    giver(),
    wire,
    { external_id: "user-42" },
    {
      onFrame(frame) {
        frames.push(frame)
        for (const look of waiting) look()
      },
    },
  )
  streams.push(stream)
  const until = (holds: () => boolean) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => holds() && resolve()
    waiting.add(look)
    look()
    return promise
  }
  const many = (type: InboxFrame["type"]) => frames.filter((one) => one.type === type).length
  return { stream, frames, until, many }
}

const seqOf = (frame: InboxFrame): number[] =>
  "seq" in frame ? [frame.seq] : "upto_seq" in frame ? [frame.upto_seq] : []

test("an inbox is followed from now on, and over a line that breaks each change comes once", async () => {
  server.create({ title: "Before" })
  const { frames, until, many } = follow()
  await until(() => many("ready") === 1)
  for (let n = 0; n < 6; n++) {
    server.cut_after = n // in the midst of what follows
    const { id } = server.create()
    server.mark(id, "read")
    if (n % 3 === 2) server.markAll("archived", { category: "billing" })
    server.cut_after = Number.POSITIVE_INFINITY
    server.cut()
    await until(() => frames.flatMap(seqOf).at(-1) === server.seq)
  }
  const changes = server.changes.map((one) => seqOf(one as InboxFrame)[0])
  expect(frames.flatMap(seqOf)).toEqual(changes.slice(1) as number[])
  expect(server.asked[0]).toBe("auth undefined")
  expect(server.asked).not.toContain("auth 0")
}, 60_000)

test("what is no longer kept is said, and it goes on with what is newer", async () => {
  const { frames, until, many } = follow()
  await until(() => many("ready") === 1)
  server.is_resync = true
  server.cut()
  server.create()
  await until(() => many("resync") === 1)
  server.is_resync = false
  server.cut()
  await until(() => many("ready") === 3)
  expect(server.asked.at(-1)).toBe("auth 1")
  expect(frames.flatMap(seqOf)).toEqual([])
}, 60_000)

test("a token that ends is replaced on the same socket", async () => {
  tokens = ["first", "second"]
  const { until, many } = follow()
  await until(() => many("ready") === 1)
  server.say({ type: "token.expiring", in: 60 })
  const { promise, resolve } = Promise.withResolvers<void>()
  const looking = setInterval(() => server.asked.includes("refresh second") && resolve(), 10)
  await promise
  clearInterval(looking)
  expect(server.sockets.size).toBe(1)
})

test.each([
  [4400, exits.failed],
  [4401, exits.unauthorized],
  [4403, exits.unauthorized],
  [4429, exits.limited],
])("a sign-in that ends with %i ends it with %i", async (code, exit) => {
  server.closing = () => code
  const { stream } = follow()
  expect(await stream.ended.catch(({ exit }: Failure) => exit)).toBe(exit)
})

test("a token that is refused ends it, except while a server that was there is away", async () => {
  const unknown = new Failure(exits.not_found, "subscriber_not_found", "There is none.")
  const away = new Failure(exits.unreachable, "unreachable", "No server answers.")
  tokens = [away]
  expect(await follow().stream.ended.catch((error) => error)).toBe(away)
  tokens = ["first", away, "first", unknown]
  const { stream, until, many } = follow()
  await until(() => many("ready") === 1)
  server.cut()
  await until(() => many("ready") === 2)
  server.cut()
  expect(await stream.ended.catch((error) => error)).toBe(unknown)
}, 60_000)

test("its time ends while no server answers the call for a token", async () => {
  const client = { url: server.url, call: () => new Promise(() => {}) } as unknown as Client
  const options = { onFrame: () => {}, timeout: 1 }
  const stream = new InboxStream(client, client, { external_id: "user-42" }, options)
  expect(await stream.ended).toBeUndefined()
})

test("each frame is a line that moves no cursor", () => {
  const message = {
    ...server.create({ title: "Hi\u001b[2J", read_at: "2026-11-21T10:30:00.000Z" }),
  }
  const line = (frame: object) =>
    frameLine(frame as InboxFrame, painter(false), { width: 120 }).slice("12:00:00.000 ".length)
  expect(line({ type: "message.updated", seq: 7, message })).toMatch(
    /^#7 +updated +000001 read +Hi/,
  )
  expect(line({ type: "message.updated", seq: 7, message })).not.toContain("\u001b")
  expect(line({ type: "message.deleted", seq: 8, id: "000001" })).toMatch(/^#8 +deleted +000001$/)
  expect(line({ type: "counts", unread: 3, unseen: 1, total: 10 })).toContain("3 unread, 1 unseen")
  const all = { type: "messages.read", upto_seq: 9, category: "billing" }
  expect(line(all)).toMatch(/^#9 +read +all messages in billing$/)
  const before = "2026-11-21T10:30:00.000Z"
  expect(line({ type: "messages.archived", upto_seq: 9, before, read_only: true })).toEndWith(
    `all read messages from before ${before}`,
  )
})
