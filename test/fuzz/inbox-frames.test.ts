import { expect, test } from "bun:test"
import { NOBODY } from "../harness/mail"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { enter, knock, numbered, numbers, person } from "../inbox/inbox-dial"

const service = await sharedService()
const { url } = service.listen()

const junk = fc.oneof(
  fc.constantFrom(null, "", "*", 0, -1, 1e21, true, [], {}, "\0", "\ud800", "__proto__"),
  fc.jsonValue({ maxDepth: 3 }),
)

const orJunk = <Value>(arbitrary: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 20, arbitrary }, { weight: 1, arbitrary: junk })

const TYPES = ["auth", "resume", "mark", "refresh", "ping", "pong"]
const MARKS = ["read", "unread", "seen", "archived", "unarchived"]

/** What the server may close such a client with. */
const CODES = [1009, 4400, 4401, 4429]
const TOLD = /^(ready|message\.\w+|messages\.\w+|counts|ack|error|pong|resync|token\.expiring)$/

test("whatever a client says, it is answered or closed, and the inbox stays whole", async () => {
  const project = await service.project()
  const ann = await person(service, project)
  const ids = await Promise.all(["a", "b", "c"].map((title) => ann.send(title)))
  using witness = await enter(url, ann.token)
  const frame = fc.record(
    {
      type: orJunk(fc.constantFrom(...TYPES)),
      token: orJunk(fc.constantFrom(ann.token, "a.b.c", project.key)),
      after_seq: orJunk(fc.integer({ min: 0, max: 20 })),
      id: orJunk(fc.constantFrom(...ids, NOBODY, "*")),
      as: orJunk(fc.constantFrom(...MARKS)),
      ref: orJunk(fc.string({ maxLength: 120 })),
    },
    { requiredKeys: ["type"], noNullPrototype: true },
  )
  const said = fc.oneof(
    { weight: 20, arbitrary: frame.map((one) => JSON.stringify(one)) },
    { weight: 1, arbitrary: fc.string() },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    { weight: 1, arbitrary: fc.constant(JSON.stringify({ type: "ping", x: "x".repeat(16_384) })) },
  )
  const ends = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(said, { maxLength: 5 }), async (signs_in, all) => {
      const socket = signs_in ? await enter(url, ann.token) : await knock(url)
      for (const one of all) socket.send(one)
      socket.send({ type: "mark", id: NOBODY, as: "read", ref: "the last one" })
      const last = socket.next(({ ref }) => ref === "the last one").then(() => 0)
      const end = await Promise.race([last, socket.closed.then(({ code }) => code)])
      ends.set(end, (ends.get(end) ?? 0) + 1)
      if (end !== 0) expect(CODES).toContain(end)
      for (const { type } of socket.frames) expect(type).toMatch(TOLD)
      socket.cut()
    }),
    { numRuns: sizes.inbox_frames, seed: 42 },
  )
  for (const end of [0, 4400, 4401])
    expect(ends.get(end) ?? 0).toBeGreaterThan(sizes.inbox_frames / 50)
  await ann.send("after all")
  const { seq: last } = await witness.next(
    ({ message }) => (message as { title?: string } | undefined)?.title === "after all",
  )
  const seen = numbers(witness)
  expect(seen).toEqual(Array.from({ length: Number(last) - 3 }, (_, n) => n + 4))
  using again = await enter(url, ann.token, 0)
  await numbered(again, Number(last))
  expect(numbers(again)).toEqual([1, 2, 3, ...seen])
})
