import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { projects } from "../../src/identity/tables"
import { audienceObstacle } from "../../src/messages/suppressed"
import { messages } from "../../src/messages/tables"
import { sharedService } from "../harness/shared-service"
import { addDevice, pushProject } from "../push/pushes"

const service = await sharedService()
const { store } = service

/** A project with a cap, and a subscriber with so many devices. */
async function capped(count: number, devices: number) {
  const project = await pushProject(service)
  const { project_id } = project
  const settings = { frequency_cap: { count, per_seconds: 3600 } }
  await project.post("/v1/subscribers", { external_id: "ann" })
  await store.tx((tx) => tx.update(projects).set({ settings }).where(eq(projects.id, project_id)))
  for (let at = 0; at < devices; at++) await addDevice(store, project_id, { user_id: "ann" })
  const rows = () =>
    store.read
      .select()
      .from(messages)
      .where(eq(messages.project_id, project_id))
      .orderBy(messages.id)
  return { project, rows }
}

const PUSH = { user_id: "ann", title: "Hi" }

const statuses = ({ body }: { body: { data: { messages: { status: string }[] } } }) =>
  body.data.messages.map(({ status }) => status)

test("the cap counts a send to several devices once, and refuses the next one as a whole", async () => {
  const { project, rows } = await capped(2, 3)
  for (const status of ["queued", "queued", "failed"])
    expect(statuses(await project.post("/v1/push", PUSH))).toEqual(Array(3).fill(status))
  const refused = (await rows()).filter(({ status }) => status === "failed")
  expect(refused.map(({ error }) => error?.code)).toEqual(Array(3).fill("frequency_cap"))
  const reach = await project.get("/v1/subscribers/ann/reachability")
  expect(reach.body.data.push).toMatchObject({ allowed: false, reason: "frequency_cap" })
})

test("sends that are accepted together count each other, and none of them itself", async () => {
  const { project } = await capped(2, 2)
  const { body } = await project.post("/v1/push/batch", { messages: [PUSH, PUSH, PUSH] })
  const told = body.data.results.map((one: never) => statuses({ body: { data: one } }))
  expect(told).toEqual([
    ["queued", "queued"],
    ["queued", "queued"],
    ["failed", "failed"],
  ])
})

test("as a message leaves, the others of its send do not count against it", async () => {
  const { project, rows } = await capped(1, 3)
  await project.post("/v1/push", PUSH)
  const asked = await Promise.all((await rows()).map((row) => audienceObstacle(store.read, row)))
  expect(asked).toEqual([undefined, undefined, undefined])
  for (const row of await rows()) expect(await audienceObstacle(store.read, row)).toBeUndefined()
})

test("a repetition of a refused send is answered what the first one was", async () => {
  const { project } = await capped(1, 1)
  const asked = (key: string) => project.post("/v1/push", PUSH, { "idempotency-key": key })
  await asked("one")
  const [first, second] = [await asked("two"), await asked("two")]
  expect(statuses(first)).toEqual(["failed"])
  expect(second.body.data).toEqual(first.body.data)
})
