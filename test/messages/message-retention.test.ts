import { expect, test } from "bun:test"
import { count, inArray } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { expireContents } from "../../src/messages/message-retention"
import { messageContents } from "../../src/messages/tables"
import type { Store } from "../../src/store/store"
import { deliverAll, delivered } from "../harness/delivery"
import { mail } from "../harness/mail"
import { testService } from "../harness/service"

test("the signal ends the removal of contents after the transaction that runs", async () => {
  await using service = await testService()
  const { store } = service
  const project = await service.project()
  const messages = Array.from({ length: 50 }, () => mail())
  const sent = await project.post("/v1/emails/batch", { messages })
  const ids = sent.body.data.results.map((one: { id: string }) => one.id)
  await deliverAll(service, (email) => delivered(email))
  const left = async () => {
    const rows = store.read.select({ n: count() }).from(messageContents)
    const [row] = await rows.where(inArray(messageContents.message_id, ids))
    return Number(row?.n)
  }

  const end = new AbortController()
  const tx: Store["tx"] = async (closure) => {
    const result = await store.tx(closure)
    end.abort()
    return result
  }
  const { project_id } = project
  const old = { project_id, channel: "email" as const, before: secondsFromNow(60) }
  expect(await expireContents({ ...store, tx }, old, "", end.signal)).toBeUndefined()
  expect(await left()).toBe(30)
  expect(await expireContents(store, old, "")).toBe(ids.sort().at(-1))
  expect(await left()).toBe(0)
})
