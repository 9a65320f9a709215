import { describe, expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { addSubscriber } from "./subscriber-app"

const service = await sharedService()

describe("a message to one subscriber", () => {
  test("is in the inbox when the answer comes", async () => {
    const project = await service.project()
    const id = await addSubscriber(service, project, "ann")
    const sent = await project.post("/v1/inbox", {
      ...{ external_id: "ann", title: "Your invoice", body: "It is due.", category: "billing" },
      ...{
        action_url: "/invoices/7",
        action_label: "Show",
        priority: "high",
        data: { invoice: 7 },
      },
      ...{ actions: [{ key: "pay", label: "Pay", url: "https://example.com/pay" }] },
      ...{ tags: ["invoice"], metadata: { order: "A" }, collapse_key: "invoice-7" },
    })
    expect(sent.status).toBe(201)
    const [message] = sent.body.data.messages
    const inbox_id = message.id
    expect(sent.body.data).toEqual({
      ...{ id: inbox_id, status: "created", skipped: 0 },
      messages: [{ id: inbox_id, subscriber_id: id }],
    })
    const { body } = await project.get(`/v1/inbox/${inbox_id}`)
    const pay = { key: "pay", label: "Pay", url: "https://example.com/pay" }
    expect(body.data).toMatchObject({
      ...{ id: inbox_id, seq: 1, subscriber_id: id, title: "Your invoice", body: "It is due." },
      ...{ action_url: "/invoices/7", action_label: "Show", priority: "high", icon: null },
      actions: [{ ...pay, style: null, completed_at: null }],
      ...{ data: { invoice: 7 }, tags: ["invoice"], metadata: { order: "A" }, seen_at: null },
    })
    expect((await project.get("/v1/inbox?external_id=ann&state=unseen")).body.data).toEqual([
      body.data,
    ])
    expect((await project.get("/v1/inbox?external_id=bob")).body.data).toEqual([])
    expect((await project.get("/v1/inbox/stats")).body.data).toMatchObject({ created: 1, read: 0 })
    expect((await project.call("DELETE", `/v1/inbox/${inbox_id}`)).body.data.deleted).toBe(true)
    expect(refusal(await project.get(`/v1/inbox/${inbox_id}`))).toEqual([404, "not_found"])
  })
})
