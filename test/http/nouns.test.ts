import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { newId } from "../../src/core/ids"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

interface Noun {
  path: string
  /** As the audit log names it. */
  name: string
  create: object
  /** Undefined where nothing of a record changes. */
  change?: object
  /** The field by which paths name a record. */
  named_by?: string
}

const ADDRESS = { email: "ann@x.test" }

/** Every noun that is declared, with what makes and changes a record of it. */
const NOUNS: Noun[] = [
  {
    path: "/v1/topics",
    name: "topic",
    create: { name: "A" },
    change: { name: "B" },
    named_by: "key",
  },
  {
    path: "/v1/subscribers/categories",
    name: "category",
    create: { name: "A" },
    change: { name: "B" },
  },
  {
    path: "/v1/inbound-routes",
    name: "inbound_route",
    create: { match: { to: "a@in.x.test" }, action: "drop" },
    change: { priority: 3 },
  },
  {
    path: "/v1/templates",
    name: "template",
    create: { name: "a", subject: "A", text: "A" },
    change: { name: "b" },
  },
  {
    path: "/v1/domains",
    name: "domain",
    create: { domain: "x.test" },
    change: { return_path: "back" },
  },
  { path: "/v1/suppressions", name: "suppression", create: ADDRESS },
]

/** What may differ between two looks at one record. */
const stable = ({ updated_at: _, records: __, ...record }: Record<string, unknown>) => record

describe.each(NOUNS)("the noun of $path", ({ path, name, create, change, named_by = "id" }) => {
  test("is made, read, listed, changed and removed, and the audit log tells it", async () => {
    const project = await service.project()
    const made = await project.post(path, create)
    expect(made.status).toBe(201)
    const { data } = made.body
    const item = `${path}/${data[named_by]}`
    expect(stable((await project.get(item)).body.data)).toEqual(stable(data))
    const { body } = await project.get(path)
    expect([body.data.map(({ id }: { id: string }) => id), body.meta.total]).toEqual([[data.id], 1])
    if (change) {
      const changed = await project.call("PATCH", item, { body: change })
      expect([changed.status, changed.body.data]).toEqual([200, expect.objectContaining(change)])
    }
    expect((await project.call("DELETE", item)).body.data).toEqual({ id: data.id, deleted: true })
    expect((await project.get(item)).status).toBe(404)
    expect((await project.get(path)).body.meta.total).toBe(0)
    const told = await store.read.select().from(auditLog).where(eq(auditLog.target_id, data.id))
    const actions = told.map(({ action }) => action)
    expect(actions).toContain(`${name}.deleted`)
    if (change)
      expect(actions).toEqual(expect.arrayContaining([`${name}.created`, `${name}.updated`]))
  })

  test("is unknown to another project, and under a name that is none", async () => {
    const [owner, other] = [await service.project(), await service.project()]
    const { data } = (await owner.post(path, create)).body
    const item = `${path}/${data[named_by]}`
    for (const method of ["GET", "DELETE", ...(change ? ["PATCH"] : [])]) {
      const body = method === "PATCH" ? { body: change } : undefined
      for (const at of [item, `${path}/${newId()}`, `${path}/%00`]) {
        expect(refusal(await other.call(method, at, body))[0]).toBe(404)
      }
    }
    expect((await other.get(path)).body.data).toEqual([])
    expect((await owner.get(item)).status).toBe(200)
  })

  test("stores no field that its schema does not name", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const foreign = { id: newId(), project_id: other.project_id, account_id: other.account_id }
    const { data } = (await project.post(path, { ...create, ...foreign })).body
    expect(data.id).not.toBe(foreign.id)
    expect((await project.get(path)).body.meta.total).toBe(1)
    expect((await other.get(path)).body.data).toEqual([])
    if (!change) return
    const item = `${path}/${data[named_by]}`
    expect((await project.call("PATCH", item, { body: { ...change, ...foreign } })).status).toBe(
      200,
    )
    expect((await other.get(path)).body.data).toEqual([])
  })
})
