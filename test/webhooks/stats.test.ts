import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { deliveries } from "../../src/webhooks/tables"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, settleAs } from "./endpoints"

const service = await sharedService()

test("how the deliveries went, of the last day or week", async () => {
  const project = await service.project()
  const { id } = await endpoint(project)
  const path = `/v1/webhooks/${id}/stats`
  const none = { attempts: 0, success: 0, failed: 0, held: 0, p50_ms: null, p95_ms: null }
  expect((await project.get(path)).body.data).toEqual({ ...none, by_status: {} })

  await happens(project)
  const created_at = secondsFromNow(-3 * 86_400)
  await settleAs(service, project, { status: "held", created_at })
  for (let number = 0; number < 20; number++) await happens(project)
  const list = await deliveriesOf(project, id, "?status=pending")
  for (const [at, delivery] of list.entries()) {
    const good = { status: "success" as const, attempts: 1, last_response_status: 204 }
    const bad = { status: "failed" as const, attempts: 3, last_error: "timeout" as const }
    const out = { status: "exhausted" as const, attempts: 6, last_response_status: 500 }
    const change = { ...(at < 17 ? good : at < 19 ? bad : out), latency_ms: at + 1 }
    await service.store.tx((tx) =>
      tx.update(deliveries).set(change).where(eq(deliveries.id, delivery.id)),
    )
  }
  const day = { attempts: 17 + 2 * 3 + 6, success: 17, failed: 3, p50_ms: 11, p95_ms: 20 }
  const by_status = { "204": 17, "500": 1, timeout: 2 }
  expect((await project.get(path)).body.data).toEqual({ ...day, held: 0, by_status })
  const week = await project.get(`${path}?window=7d`)
  expect(week.body.data).toEqual({ ...day, held: 1, by_status })
  expect(refusal(await project.get(`${path}?window=1h`))).toEqual([422, "validation_error"])
})
