import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { newId } from "../../src/core/ids"
import { HELD } from "../../src/jobs/work-item"
import { messageRows } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import { assessAll } from "../../src/reputation/evaluate"
import { releaseStranded } from "../../src/reputation/gate"
import { complaintHolds } from "../../src/reputation/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { delivered } from "../harness/delivery"
import { quietLog } from "../harness/quiet"
import { type TestProject, type TestService, testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"
import { sent } from "./mail-counts"

quietLog()
const clock = movableClock()

const REPUTATION = "/v1/accounts/me/reputation"

const mail = (tags: string[]) => ({
  ...{ from: "bell@example.test", to: "ann@example.test", subject: "Hi", text: "hello", tags },
})

const post = async (project: TestProject, tags: string[]): Promise<string> =>
  (await project.post("/v1/emails", mail(tags))).body.id

const statusOf = async (project: TestProject, id: string) => {
  const { status, status_reason, next_attempt_at } = (await project.get(`/v1/emails/${id}`)).body
    .data
  return [status, status_reason, next_attempt_at]
}

/** Runs the loops of the service until no message is ready any more. */
async function run({ parts }: TestService) {
  const { store } = parts
  const provider = {
    name: "mailbox",
    schedule: () => undefined,
    close: async () => {},
    send: async ({ to: [email = ""] }: { to: string[] }) => ({
      ...{ ...delivered(email), others: [], transcript: [], provider: "mailbox" },
      schedule: () => undefined,
    }),
  }
  const channels = channelTable({ ...parts, provider, sandbox: provider, concurrency: 4 })
  const work = workOf(parts, channels, parts)
  const alone = engine === "sqlite"
  const loop = new WorkLoops({ store, work, concurrency: 4, lease_ms: 30_000, alone })
  await loop.start()
  const isOpen = async () => {
    const rows = await store.read.select().from(messages).where(eq(messages.status, "queued"))
    return rows.some(({ state }) => state !== HELD)
  }
  while (await isOpen()) await Bun.sleep(5)
  await loop.stop(5_000)
}

describe("a tag that people complain about", () => {
  test("is held alone: its new and waiting mail waits, all other mail goes on", async () => {
    await using service = await testService()
    const { store } = service
    const project = await service.project()
    const waiting = await post(project, ["news", "daily"])
    await sent(store, project, { sent: 199, complained: 1, tags: ["news"] })
    const [fresh, other] = [await post(project, ["news"]), await post(project, ["receipt"])]
    await run(service)

    expect(await statusOf(project, waiting)).toEqual(["queued", "held_by_complaints", null])
    expect(await statusOf(project, fresh)).toEqual(["queued", "held_by_complaints", null])
    expect((await statusOf(project, other))[0]).toBe("delivered")
    const { data } = (await project.get(REPUTATION)).body
    expect(data).toMatchObject({
      ...{ status: "active", complaint_rate: 1 / 200 },
      held: [{ tag: "news", template_id: null, complaint_rate: 0.005025, waiting: 2 }],
    })
    const queue = (await project.get("/v1/queue")).body.data.by_state
    expect(queue).toMatchObject([
      { queue: "email", state: "held", reason: "held_by_complaints", count: 2 },
    ])
  })

  test("waits for its release, which queues all of it again, and then counts anew", async () => {
    await using service = await testService()
    const { store } = service
    const project = await service.project()
    await sent(store, project, { sent: 100, complained: 1, tags: ["news"] })
    const ids = await Promise.all(Array.from({ length: 3 }, () => post(project, ["news"])))
    await run(service)
    const release = (body: object) => project.post(`${REPUTATION}/release`, body)
    expect((await release({ tag: "news" })).body.data).toEqual({ released: 3 })
    expect(refusal(await release({ tag: "news" }))).toEqual([404, "not_found"])
    await run(service)
    for (const id of ids) expect((await statusOf(project, id))[0]).toBe("delivered")

    await assessAll(store)
    expect((await project.get(REPUTATION)).body.data.held).toEqual([])
    await sent(store, project, { sent: 46, complained: 1, tags: ["news"] })
    expect((await project.get(REPUTATION)).body.data.held).toEqual([])
    await sent(store, project, { sent: 1, complained: 1, tags: ["news"] }) // the fiftieth
    expect((await project.get(REPUTATION)).body.data.held).toHaveLength(1)
  })

  test("is held once fifty were sent, also where the complaint came before", async () => {
    await using service = await testService()
    const project = await service.project()
    await sent(service.store, project, { sent: 30, complained: 1, tags: ["news"] })
    await sent(service.store, project, { sent: 19, tags: ["news"] })
    const held = async () => (await project.get(REPUTATION)).body.data.held.length
    expect(await held()).toBe(0)
    await sent(service.store, project, { sent: 1, tags: ["news"] })
    clock.advance({ seconds: 60 })
    await assessAll(service.store)
    expect(await held()).toBe(1)
  })

  test("of one project holds nothing of another, and is none of its business", async () => {
    await using service = await testService()
    const [project, neighbour] = [await service.project(), await service.project()]
    await sent(service.store, project, { sent: 60, complained: 1, tags: ["news"] })
    const id = await post(neighbour, ["news"])
    await run(service)
    expect((await statusOf(neighbour, id))[0]).toBe("delivered")
    const tried = await neighbour.post(`${REPUTATION}/release`, { tag: "news" })
    expect(refusal(tried)).toEqual([404, "not_found"])
  })
})

test("a template is held in the same way, and a release names exactly one of both", async () => {
  await using service = await testService()
  const { store } = service
  const project = await service.project()
  const template_id = newId()
  await sent(store, project, { sent: 60, complained: 1, template_id })
  const id = await post(project, [])
  await store.tx((tx) => tx.update(messages).set({ template_id }).where(eq(messages.id, id)))
  await run(service)
  expect(await statusOf(project, id)).toEqual(["queued", "held_by_complaints", null])
  const release = (body: object) => project.post(`${REPUTATION}/release`, body)
  for (const body of [{}, { tag: "news", template_id }, { template_id: "news" }]) {
    expect((await release(body)).status).toBe(422)
  }
  expect((await release({ template_id })).body.data).toEqual({ released: 1 })
})

test("what was held just as its tag was released is found within a minute", async () => {
  await using service = await testService()
  const { store } = service
  const project = await service.project()
  await sent(store, project, { sent: 60, complained: 1, tags: ["news"] })
  const id = await post(project, ["news"])
  await run(service)
  await releaseStranded(store, messageRows)
  expect((await statusOf(project, id))[1]).toBe("held_by_complaints")
  await store.tx((tx) => tx.update(complaintHolds).set({ held_at: null }))
  await releaseStranded(store, messageRows)
  await run(service)
  expect((await statusOf(project, id))[0]).toBe("delivered")
})
