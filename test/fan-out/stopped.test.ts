import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { CHUNK } from "../../src/fan-out/audience-source"
import { fanOutStopped } from "../../src/fan-out/fan-out"
import { stopOf } from "../../src/fan-out/stopped"
import { jobs } from "../../src/jobs/tables"
import { messageTable } from "../../src/messages/pipeline"
import { movableClock } from "../harness/clock"
import { deliverAll, deliverBy, delivered } from "../harness/delivery"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

/** A publish whose first chunk is written, and nothing of it is sent. It goes on only step by step. */
async function oneChunk(expires_at: string | null = null) {
  const project = await service.project()
  const everybody = Array.from({ length: CHUNK + 5 }, () => ({}))
  const { topic } = await audience(store, project, everybody)
  const { id } = await publish(service, project, topic, { expires_at })
  const walk = await begun(service, id)
  await store.tx((tx) => tx.delete(jobs).where(eq(jobs.project_id, project.project_id)))
  expect(await walk.step()).toBe("more")
  const cancel = () => project.post(`/v1/topics/${topic.key}/publishes/${id}/cancel`)
  const made = () => messagesOf(parts, project, id)
  return { project, id, walk, cancel, made }
}

const eventsOf = async (project: TestProject, id: string) => {
  const { body } = await project.get(`/v1/emails/${id}/events`)
  return body.data.events.map(({ type }: { type: string }) => type)
}

async function queueStepOf(project: TestProject, id: string | undefined) {
  const { body } = await project.get(`/v1/emails/${id}/explain`)
  const { steps } = body.data
  return steps.findLast(({ stage }: { stage: string }) => stage === "queue")
}

test("a cancel ends the messages that wait, and the counts are those of the rows", async () => {
  const { project, id, cancel, made } = await oneChunk()
  const answer = await cancel()
  expect([answer.status, answer.body.data]).toMatchObject([200, { id, status: "cancelled" }])
  await walkAll(service)
  const all = await made()
  const reasons = all.map(({ status, status_reason, error }) => [
    status,
    status_reason,
    error?.code,
  ])
  expect(reasons).toEqual(Array.from({ length: CHUNK }, () => ["failed", "cancelled", "cancelled"]))
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: CHUNK, failed: CHUNK })
  expect(await eventsOf(project, all[0]?.id ?? "")).toEqual(["email.queued", "email.failed"])
  expect(await deliverAll(service)).toEqual([])
  expect(await queueStepOf(project, all[0]?.id)).toMatchObject({
    ...{
      rule: "cancelled",
      outcome: "fail",
      detail: expect.stringContaining("publish was cancel"),
    },
  })
  const failed = await project.get("/v1/emails?status=failed&per_page=1")
  expect(failed.body.meta.total).toBe(CHUNK)
  expect(await store.read.select().from(jobs).where(eq(jobs.name, fanOutStopped.name))).toEqual([])
})

test("a message whose attempt begins after the cancel is not sent, whatever the job has done", async () => {
  const { cancel, made } = await oneChunk()
  expect((await cancel()).status).toBe(200)
  const [message] = await made()
  if (!message) throw new Error("the chunk wrote no message")
  const send = () => Promise.reject(new Error("a cancelled message is delivered"))
  const channel = { deliver: send }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }
  const result = await messageTable(store, channels, stopOf).run(message, async () => message)
  expect(Object.keys(result)).toEqual(["done"])
  for (const _ of ["once", "again after a crash"]) await store.tx(async (tx) => result.done?.(tx))
  const [ended] = await made()
  expect(ended).toMatchObject({ status: "failed", status_reason: "cancelled" })
})

test("a fan-out of another project stops nothing", async () => {
  const { project, id, cancel } = await oneChunk()
  await cancel()
  const other = await service.project()
  expect(await stopOf(store.read, project.project_id, id)).toMatchObject({
    text: expect.any(String),
  })
  expect(await stopOf(store.read, other.project_id, id)).toBeUndefined()
})

test("an attempt that runs goes on, and no other one begins", async () => {
  const { id, cancel, made } = await oneChunk()
  const [began, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const handed: string[] = []
  const provider: EmailProvider = {
    name: "mailbox",
    schedule: () => undefined,
    async send({ message_id, to: [to = ""] }) {
      handed.push(message_id)
      began.resolve()
      await go.promise
      const outcome = { ...delivered(to), others: [], transcript: [] }
      return { ...outcome, provider: "mailbox", schedule: provider.schedule }
    },
    close: async () => {},
  }
  const delivery = deliverBy(parts, provider)
  await began.promise
  expect((await cancel()).status).toBe(200)
  const running = handed.length
  go.resolve()
  await delivery
  const ends = Map.groupBy(await made(), ({ status }) => status)
  expect(
    ends
      .get("delivered")
      ?.map((message) => message.id)
      .toSorted(),
  ).toEqual(handed.toSorted())
  expect(handed.length).toBeLessThanOrEqual(running + 4) // those that asked just before
  expect(ends.get("failed")?.length).toBe(CHUNK - handed.length)
  expect((await record(parts, id)).channels.email).toMatchObject({
    ...{ sent: CHUNK, failed: CHUNK - handed.length },
  })
})

/** Quiet hours of email that began an hour ago, and end in two hours. */
const quietNow = () => ({
  enabled: true,
  start: secondsFromNow(-3600).slice(11, 16),
  end: secondsFromNow(7200).slice(11, 16),
  timezone: "UTC",
  channels: ["email" as const],
})

test("a message that waits behind a complete publish is cancelled alone, as the refusal says", async () => {
  const project = await service.project()
  clock.freeze()
  const { topic } = await audience(store, project, [{ preferences: { quiet_hours: quietNow() } }])
  const { id } = await publish(service, project, topic)
  await walkAll(service)
  const refused = await project.post(`/v1/topics/${topic.key}/publishes/${id}/cancel`)
  expect([refused.status, refused.body.error]).toMatchObject([
    409,
    {
      message: expect.stringContaining(
        "The publish is completed already. GET /v1/scheduled lists the messages",
      ),
      details: { reason: "finished" },
    },
  ])
  const [waiting] = (await project.get("/v1/scheduled")).body.data
  const [message] = await messagesOf(parts, project, id)
  expect(waiting).toMatchObject({ id: message?.id, status: "scheduled" })
  expect((await project.call("DELETE", `/v1/scheduled/${waiting.id}`)).status).toBe(200)
})

test("an expiry ends messages that wait for the end of quiet hours, also of a publish that is complete", async () => {
  const project = await service.project()
  clock.freeze()
  const quiet_hours = quietNow()
  const { topic } = await audience(store, project, [{ preferences: { quiet_hours } }, {}])
  const expires_at = secondsFromNow(3600)
  const { id } = await publish(service, project, topic, { expires_at })
  await walkAll(service)
  expect((await deliverAll(service)).length).toBe(1)
  clock.advance({ seconds: 3600 })
  await walkAll(service)
  const [quiet, other] = await messagesOf(parts, project, id)
  expect(quiet).toMatchObject({
    ...{ status: "failed", status_reason: "expired", scheduled_at: expect.any(String) },
    error: { code: "expired", message: expect.stringContaining("expired before") },
  })
  expect(await queueStepOf(project, quiet?.id)).toMatchObject({ rule: "expired", outcome: "fail" })
  expect(other).toMatchObject({ status: "delivered" })
  expect(await record(parts, id)).toMatchObject({
    ...{ status: "completed", status_reason: null },
    channels: { email: { sent: 2, failed: 1 } },
  })
})

test("an expiry in the middle of the walk ends what is written and waits", async () => {
  const { id, walk, made } = await oneChunk(secondsFromNow(60))
  clock.advance({ seconds: 61 })
  expect(await walk.step()).toBe("over")
  await walkAll(service)
  const reasons = new Set((await made()).map(({ status_reason }) => status_reason))
  expect(reasons).toEqual(new Set(["expired"]))
  expect(await record(parts, id)).toMatchObject({
    ...{ status: "failed", status_reason: "expired" },
    channels: { email: { sent: CHUNK, failed: CHUNK } },
  })
})
