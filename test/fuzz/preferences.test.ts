import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { PROJECT_DEFAULTS } from "../../src/identity/caller"
import { AUDIENCE_CHANNELS } from "../../src/lib/preferences"
import { decideAll } from "../../src/messages/audience-decisions"
import { audienceOf } from "../../src/subscribers/audience"
import { subscribers } from "../../src/subscribers/tables"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { makeSubscribers } from "../topics/made-subscribers"

const service = await sharedService()

const ODD = [
  ...[
    "",
    "\0",
    "a\nb",
    "constructor",
    "toString",
    "__proto_",
    "\ud800",
    "x".repeat(300),
    "İ",
    "😀",
  ],
  ...["a.b", "../..", "%2F", "bulk", "null", "1e999"],
]

const keyOf = (...known: string[]) =>
  fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: fc.constantFrom(...ODD) },
    { weight: 1, arbitrary: fc.string({ maxLength: 20 }) },
  )

const junk = fc.oneof(
  fc.constantFrom(null, "", "true", 0, 1, -1, 1e21, [], {}, [null], { a: { b: { c: [] } } }),
  fc.jsonValue({ maxDepth: 3 }),
)

const orJunk = <Value>(arbitrary: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 40, arbitrary }, { weight: 1, arbitrary: junk })

const choice = orJunk(fc.constantFrom(true, false, null))
const choicesOf = (...known: string[]) =>
  orJunk(fc.dictionary(keyOf(...known), choice, { maxKeys: 3, noNullPrototype: true }))
const none = { requiredKeys: [] as [], noNullPrototype: true }

const channel = orJunk(
  fc.record({ enabled: choice, categories: choicesOf("news", "offers"), other: junk }, none),
)

const time = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom("00:00", "22:00", "08:00", "23:59") },
  { weight: 1, arbitrary: fc.constantFrom("24:00", "7:00", "22:00\n", "２２:００") },
)

const entry = orJunk(
  fc.record({ email: choice, push: choice, sms: choice, in_app: choice, other: junk }, none),
)

const quietHours = orJunk(
  fc.record(
    {
      ...{ enabled: choice, start: orJunk(time), end: orJunk(time), other: junk },
      timezone: orJunk(
        fc.constantFrom(
          "Asia/Kathmandu",
          "europe/berlin",
          "UTC",
          "+02:00",
          "Mars/Base",
          "\0",
          null,
        ),
      ),
      channels: orJunk(fc.array(fc.constantFrom("email", "push", "sms"), { maxLength: 2 })),
    },
    none,
  ),
)

const body = orJunk(
  fc.record(
    {
      ...{ email: channel, push: channel, sms: channel, in_app: channel, other: junk },
      topics: orJunk(
        fc.dictionary(keyOf("releases"), entry, { maxKeys: 3, noNullPrototype: true }),
      ),
      workflows: choicesOf("welcome", "w2"),
      quiet_hours: quietHours,
    },
    none,
  ),
)

const method = fc.constantFrom("POST" as const, "PATCH" as const, "PUT" as const)

test("whatever preferences are sent, they are taken as they are shown or refused, and the decision goes on", async () => {
  const project = await service.project()
  const { project_id } = project
  for (const name of ["News", "Offers"]) await project.post("/v1/subscribers/categories", { name })
  await project.post("/v1/topics", { name: "Releases" })
  const [id = ""] = await makeSubscribers(service, project, [{}])
  const own = `/v1/subscribers/${id}/preferences`
  const paths = fc.constantFrom(own, own, own, "/v1/subscribers/preferences/default")
  const statuses = new Map<number, number>()

  await fc.assert(
    fc.asyncProperty(method, paths, body, async (how, path, sent) => {
      const before = await project.get(path)
      const is_own = path === own
      const answer = await project.call(is_own ? how : "PUT", path, { body: sent })
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      const after = await project.get(path)
      if (answer.status === 200) {
        expect(after.body.data).toEqual(answer.body.data)
        const again = await project.call("PUT", path, { body: after.body.data })
        expect(again.body.data).toEqual(after.body.data)
      } else {
        expect([400, 422]).toContain(answer.status)
        expect(after.body.data).toEqual(before.body.data)
      }
      const member = (await audienceOf(service.store.read, project_id, [id])).get(id)
      if (!member) throw new Error("the subscriber is gone")
      const asked = AUDIENCE_CHANNELS.map((channel) => ({
        ...{ subscriber: member, address: null, category: "news", channel, at: 1_800_000_000_000 },
        ...{ topic: { key: "releases", default: "off" as const }, stream: "broadcast" as const },
      }))
      const settings = PROJECT_DEFAULTS
      const decided = await decideAll(service.store.read, { id: project_id, settings }, asked)
      expect(decided).toHaveLength(AUDIENCE_CHANNELS.length)
    }),
    { numRuns: sizes.preferences, seed: 43 },
  )
  expect(statuses.get(200) ?? 0).toBeGreaterThan(sizes.preferences / 20)
  expect(statuses.get(422) ?? 0).toBeGreaterThan(sizes.preferences / 20)
  const [row] = await service.store.read.select().from(subscribers).where(eq(subscribers.id, id))
  expect(JSON.stringify(row?.preferences ?? null).length).toBeLessThan(10_000)
}, 600_000)
