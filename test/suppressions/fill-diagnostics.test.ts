import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { find, remove } from "../../src/store/instance-values"
import { fillSome } from "../../src/suppressions/fill-diagnostics"
import { suppressions } from "../../src/suppressions/tables"
import { bounced, deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

test("suppressions of an older version get the replies of events that are kept, and others nothing", async () => {
  const project = await service.project()
  const addresses = Array.from({ length: 120 }, (_, at) => `a${at}@mailbox.test`)
  for (const to of addresses) await project.post("/v1/emails", mail({ to }))
  await deliverAll(service, (email) => {
    const { reply, ...rest } = bounced(email)
    return { ...rest, reply: { ...reply, response: `550 5.1.1 no ${email}` } }
  })
  await project.post("/v1/suppressions", { email: "by-hand@x.test", reason: "bounce" })
  const ours = eq(suppressions.project_id, project.project_id)
  await store.tx(async (tx) => {
    await tx.update(suppressions).set({ diagnostic: null }).where(ours)
    await remove(tx, "suppression_diagnostics")
  })
  let steps = 0
  while (await fillSome(store)) steps++
  expect(steps).toBeGreaterThanOrEqual(2)
  const rows = await store.read.select().from(suppressions).where(ours)
  expect(Object.fromEntries(rows.map((row) => [row.address, row.diagnostic]))).toEqual({
    ...Object.fromEntries(addresses.map((one) => [one, `550 5.1.1 no ${one}`])),
    "by-hand@x.test": null,
  })
  expect(await find(store.read, "suppression_diagnostics")).toBe("complete")
})
