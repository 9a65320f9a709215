import { expect, test } from "bun:test"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"

quietLog()

test("two servers of different engines run in one process", async () => {
  await using on_sqlite = await testService({ engine: "sqlite" })
  await using on_postgres = await testService({ engine: "postgres" })
  expect([on_sqlite, on_postgres].map(({ store }) => store.isAlone)).toEqual([true, false])

  for (const round of ["first", "second"]) {
    for (const [name, service] of Object.entries({ on_sqlite, on_postgres })) {
      const project = await service.project()
      const sent = await project.post("/v1/emails", mail({ subject: `${round} ${name}` }))
      expect(sent.status).toBe(201)
      const { body } = await project.get("/v1/emails")
      expect(body.data).toMatchObject([{ id: sent.body.data.id, subject: `${round} ${name}` }])
      const { body: feed } = await project.get("/v1/events")
      expect(feed.data).toMatchObject([{ type: "email.queued" }])
    }
  }
})

test("each forgets by its own commits what it remembers", async () => {
  await using on_sqlite = await testService({ engine: "sqlite" })
  await using on_postgres = await testService({ engine: "postgres" })

  for (const service of [on_sqlite, on_postgres]) {
    const project = await service.project()
    const { key, id } = await project.addKey()
    const bearer = { headers: { authorization: `Bearer ${key}` } }
    const ask = async () => (await service.anybody.call("GET", "/v1/emails", bearer)).status
    expect([await ask(), await ask()]).toEqual([200, 200])
    await project.call("DELETE", `/v1/api-keys/${id}`)
    expect(await ask()).toBe(401)
  }
})

test("a closure of one cannot use the transaction of the other", async () => {
  await using one = await testService({ engine: "sqlite" })
  await using other = await testService({ engine: "sqlite" })
  const { counters } = await import("../../src/store/tables")
  const row = { project_id: "", name: "n", shard: 0, value: 1 }

  const theirs = Promise.withResolvers<Parameters<Parameters<typeof other.store.tx>[0]>[0]>()
  await other.store.tx(async (tx) => theirs.resolve(tx))
  const tx = await theirs.promise
  const crossed = one.store.tx(async () => {
    await tx.insert(counters).values(row)
  })
  expect(await crossed.catch(String)).toContain("another store")
  expect(await other.store.read.select().from(counters)).toEqual([])
})
