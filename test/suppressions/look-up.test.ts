import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import { type MailScope, suppressedAmong } from "../../src/suppressions/look-up"
import { type NewSuppression, suppress, unsuppress } from "../../src/suppressions/suppressions"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const clock = movableClock()

const bounce = (fields: Partial<NewSuppression> = {}): NewSuppression => ({
  channel: "email",
  address: "Ann@Example.test",
  reason: "bounce",
  origin: "event",
  ...fields,
})

const add = ({ project_id }: TestProject, fields: Partial<NewSuppression> = {}) =>
  store.tx((tx) => suppress(tx, project_id, bounce(fields)))

const ask = async ({ project_id }: TestProject, scope?: MailScope) => {
  const addresses = ["ann@example.test", "ben@example.test"]
  return [
    ...(
      await suppressedAmong(store.read, { project_id, channel: "email" }, addresses, scope)
    ).keys(),
  ]
}

const inDays = (days: number) => isoFrom(millis() + days * 86_400_000)

test("an address is suppressed for its project alone", async () => {
  const [one, two] = [await service.project(), await service.project()]
  expect(await ask(one)).toEqual([])
  await add(one)
  expect(await ask(one)).toEqual(["ann@example.test"])
  expect(await ask(two)).toEqual([])
  await store.tx((tx) =>
    unsuppress(tx, one.project_id, { channel: "email", address: "ann@example.test" }),
  )
  expect(await ask(one)).toEqual([])
})

test("one of a category or topic counts for its mail alone", async () => {
  const project = await service.project()
  await add(project, { scope: { type: "category", key: "news" } })
  await add(project, { address: "ben@example.test", scope: { type: "topic", key: "news" } })
  expect(await ask(project)).toEqual([])
  expect(await ask(project, { category: "news" })).toEqual(["ann@example.test"])
  expect(await ask(project, { category: "offers" })).toEqual([])
  expect(await ask(project, { topic: "news" })).toEqual(["ben@example.test"])
  await add(project, { scope: { type: "broadcast", key: null } })
  expect(await ask(project, { broadcast: true })).toEqual(["ann@example.test"])
  const address = "ann@example.test"
  const scope = { type: "category", key: "news" } as const
  await store.tx((tx) => unsuppress(tx, project.project_id, { channel: "email", address, scope }))
  expect(await ask(project, { category: "news" })).toEqual([])
  expect(await ask(project, { broadcast: true })).toEqual([address])
})

test("what holds for the whole project is named first", async () => {
  const project = await service.project()
  await add(project, { scope: { type: "category", key: "news" }, reason: "unsubscribe" })
  await add(project, { reason: "complaint" })
  const found = await suppressedAmong(
    store.read,
    { project_id: project.project_id, channel: "email" },
    ["ann@example.test"],
    {
      category: "news",
    },
  )
  expect(found.get("ann@example.test")).toMatchObject({
    reason: "complaint",
    scope_type: "project",
  })
})

test("one that has expired does not count", async () => {
  const project = await service.project()
  await add(project, { expires_at: inDays(30) })
  expect(await ask(project)).toEqual(["ann@example.test"])
  clock.advance({ seconds: 31 * 86_400 })
  expect(await ask(project)).toEqual([])
  expect(await add(project)).toMatchObject({ expires_at: null })
  expect(await ask(project)).toEqual(["ann@example.test"])
})

test("the longer one of two stays", async () => {
  const project = await service.project()
  const first = await add(project, { expires_at: inDays(30), reason: "bounce" })
  expect(await add(project, { expires_at: inDays(10) })).toBeUndefined()
  const second = await add(project, { reason: "complaint" })
  expect(second).toMatchObject({ reason: "complaint", expires_at: null })
  expect(second?.id).not.toBe(first?.id)
  expect(await add(project, { expires_at: inDays(90) })).toBeUndefined()
  const list = (await project.get("/v1/suppressions")).body
  expect([list.data.length, list.meta.total]).toEqual([1, 1])
  expect((await project.get("/v1/suppressions?reason=bounce")).body.meta.total).toBe(0)
})

test("a project that is gone suppresses nobody", async () => {
  expect(await store.tx((tx) => suppress(tx, newId(), bounce()))).toBeUndefined()
})
