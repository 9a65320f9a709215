import { expect, test } from "bun:test"
import { and, asc, eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { sharedService } from "../harness/shared-service"
import { addDomain, check } from "./acme"

const service = await sharedService()

test("whoever changes a domain is written down, without secrets and without what servers said", async () => {
  const project = await service.project()
  const domain = await addDomain(project)
  const path = `/v1/domains/${domain.id}`
  await project.call("PATCH", path, { body: { return_path: "back" } })
  await project.post(`${path}/rotate-dkim`, { selector: "s2" })
  await check(project, domain) // changes nothing of anybody's
  await project.call("DELETE", path)
  const query = service.store.read.select().from(auditLog)
  const ours = and(eq(auditLog.project_id, project.project_id), eq(auditLog.target_type, "domain"))
  const rows = await query.where(ours).orderBy(asc(auditLog.id))
  expect(rows.map(({ action, target_id }) => [action, target_id])).toEqual([
    ["domain.created", domain.id],
    ["domain.updated", domain.id],
    ["domain.dkim_rotated", domain.id],
    ["domain.deleted", domain.id],
  ])
  expect(rows.map(({ actor }) => actor.type)).toEqual(Array(4).fill("key"))
  expect(rows[1]).toMatchObject({
    before: { return_path: "bounce" },
    after: { return_path: "back" },
  })
  expect(rows[2]).toMatchObject({ after: { dkim_selector: "s2" } })
  expect(JSON.stringify(rows)).not.toMatch(/PRIVATE|private_key|verification_token|"records"/)
})
