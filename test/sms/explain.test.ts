import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { secondsFromNow } from "../../src/core/time"
import { OVER } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { explain } from "../../src/sms/explain"
import { sharedService } from "../harness/shared-service"
import { addReceived, addText, OURS } from "./texts"

const service = await sharedService()
const { store } = service
const ANN = "+4366012345678"

const told = async (project_id: string, id: string) => {
  const { steps, ...rest } = await explain(store.read, project_id, id)
  return { ...rest, stages: new Map(steps.map((step) => [step.stage, step])) }
}

test("a text is explained by the stages of texts alone, with its segments", async () => {
  const project = await service.project()
  const scheduled_at = secondsFromNow(3600)
  const body = "x".repeat(161)
  const id = await addText(store, project, { to: ANN, body, scheduled_at })
  const { sms_id, verdict, summary, stages } = await told(project.project_id, id)
  expect([sms_id, verdict]).toEqual([id, "queued"])
  expect(summary).toBe(`The text to ${ANN} waits for ${scheduled_at}.`)
  expect([...stages.keys()]).toEqual([
    ...["auth", "source", "quota", "sending_status", "sender", "template", "suppression"],
    ...["preference", "quiet_hours", "queue", "provider", "outcome", "webhooks"],
  ])
  expect(stages.get("quota")?.detail).toBe("It used 2 segments of the month's quota.")
  expect(stages.get("sender")?.detail).toBe(`The configuration has the sender ${OURS}.`)
  expect(stages.get("queue")).toMatchObject({ rule: "scheduled", outcome: "wait" })
  expect((await project.call("DELETE", `/v1/scheduled/${id}`)).status).toBe(200)
  const { steps } = await explain(store.read, project.project_id, id)
  const ended = steps.filter(({ rule }) => rule === "cancelled").map(({ stage }) => stage)
  expect(ended).toEqual(["queue", "outcome"])
})

test("a text that came in says from whom, and a foreign one is not there", async () => {
  const [project, other] = [await service.project(), await service.project()]
  const id = await addReceived(store, project, { to: ANN, body: "Yes" })
  const { verdict, summary, stages } = await told(project.project_id, id)
  expect(verdict).toBe("received")
  expect(summary).toBe(`The text from ${ANN} to ${OURS} was received.`)
  expect([...stages.keys()]).toEqual(["source", "webhooks"])
  for (const foreign of [newId(), id]) {
    await expect(explain(store.read, other.project_id, foreign)).rejects.toMatchObject({
      status: 404,
    })
  }
})

test("a text that nobody confirmed is not told as one that was sent", async () => {
  const project = await service.project()
  const id = await addText(store, project, { to: ANN })
  const change = { status: "sent", status_reason: "unconfirmed", state: OVER } as const
  await store.tx((tx) => tx.update(messages).set(change).where(eq(messages.id, id)))
  const { summary } = await told(project.project_id, id)
  expect(summary).toBe(`The text to ${ANN} was sent (unconfirmed) after 0 attempts.`)
})

test("the reason of a failure is told once, as one sentence", async () => {
  const project = await service.project()
  const id = await addText(store, project, { to: ANN })
  const said = "The number cannot receive texts."
  const error = { code: "provider_error", message: said, smtp_code: null, enhanced_code: null }
  const change = { status: "failed", status_reason: said, error, state: OVER } as const
  await store.tx((tx) => tx.update(messages).set(change).where(eq(messages.id, id)))
  const { summary, stages } = await told(project.project_id, id)
  expect(summary).toBe(
    `The text to ${ANN} ended failed, because of The number cannot receive texts.`,
  )
  expect(stages.get("outcome")?.detail).toBe(`It is failed (${said}).`)
})
