import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { firstIdAt } from "../../src/core/ids"
import { millis, secondsFromNow } from "../../src/core/time"
import { projects } from "../../src/identity/tables"
import { countByDay, purgeMessageDays } from "../../src/messages/day-counts"
import { removeMessages } from "../../src/messages/message-retention"
import { accept } from "../../src/messages/pipeline"
import { feedback } from "../../src/messages/settle"
import { messageDays, type NewMessage } from "../../src/messages/tables"
import { wrongDays } from "../../src/operations/day-recount"
import { stats } from "../../src/sms/stats"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { sharedService } from "../harness/shared-service"
import { testStore } from "../harness/store"
import { letter, outcome, PROJECT, told } from "../messages/letters"
import { type PostOffice, postOffice } from "../messages/post-office"

const clock = movableClock()

const DAY_SECONDS = 86_400

const text = (more: Partial<NewMessage> = {}) => letter({ channel: "sms", units: 2, ...more })

const by = (provider: string, status: "sent" | "failed" | "retry") => ({
  ...outcome([told("to@example.test", { status })]),
  provider,
})

const wrong = ({ store }: Pick<PostOffice, "store">) =>
  Array.fromAsync(wrongDays(store.read, PROJECT, { pause: async () => {}, since: null }))

const NONE = { queued: 0, sent: 0, delivered: 0, undelivered: 0, failed: 0, cancelled: 0 }

test("counts follow the status and the last provider of each text", async () => {
  const answers = [by("twilio", "sent"), by("twilio", "failed"), by("twilio", "retry")]
  await using office = await postOffice(...answers, by("vonage", "sent"))
  const { store } = office
  const read = async () => {
    const { period: _, ...counts } = await stats(store.read, PROJECT, undefined)
    return counts
  }
  const nothing = { total: 0, segments: 0, by_status: NONE, by_provider: {} }
  expect(await read()).toMatchObject(nothing)
  const first = await office.accept(text())
  await office.runDue()
  for (const units of [1, 3]) {
    await office.accept(text({ units }))
    await office.runDue()
  }
  await office.accept(text({ project_id: idFor("project_2"), scheduled_at: secondsFromNow(9999) }))
  const all = { total: 3, segments: 6 }
  expect(await read()).toMatchObject({
    ...{ ...all, by_provider: { twilio: 3 } },
    by_status: { ...NONE, queued: 1, sent: 1, failed: 1 },
  })
  const fact = { type: "delivered", address: "to@example.test" } as const
  await store.tx((tx) => feedback(tx, first, fact))
  clock.advance({ seconds: 120 })
  await office.runDue()
  expect(await read()).toMatchObject({
    ...{ ...all, by_provider: { twilio: 2, vonage: 1 } },
    by_status: { ...NONE, delivered: 1, sent: 1, failed: 1 },
  })
  expect(await wrong(office)).toEqual([])
  await store.tx((tx) =>
    countByDay(tx, [
      {
        message: { ...text(), status: "sent", status_reason: null, provider: null, units: 5 },
        by: 1,
      },
    ]),
  )
  expect(await wrong(office)).toHaveLength(1)
})

test("what retention deletes stays counted for three years, and every text has its day", async () => {
  await using office = await postOffice(by("log", "sent"))
  const { store } = office
  await office.accept(text())
  await office.runDue()
  const { start, end } = (await stats(store.read, PROJECT, "day")).period
  clock.advance({ seconds: 400 * DAY_SECONDS })
  const old = { project_id: PROJECT, channel: "sms" as const, before: secondsFromNow(0) }
  await removeMessages(store, old, "", [])
  await office.accept(text({ id: firstIdAt(millis()) }))
  expect(await wrong(office)).toEqual([])
  const ours = await stats(store.read, PROJECT, `${start}/${end}`)
  expect(ours).toMatchObject({ total: 1, segments: 2, by_provider: { log: 1 } })
  expect(await stats(store.read, PROJECT, "day")).toMatchObject({ total: 1, by_provider: {} })
  clock.advance({ seconds: 700 * DAY_SECONDS })
  while ((await purgeMessageDays(store)) > 0);
  const left = await store.read.select().from(messageDays).where(eq(messageDays.status, "sent"))
  expect(left).toEqual([])
  expect(await store.read.select().from(messageDays)).toHaveLength(1)
})

test("email has no counts by day", async () => {
  await using it = await testStore()
  await it.store.tx((tx) => accept(tx, [letter()]))
  expect(await it.store.read.select().from(messageDays)).toEqual([])
})

test("a key reads those of its project, over HTTP", async () => {
  const service = await sharedService()
  const [project, other] = [await service.project(), await service.project()]
  const settings = { sandbox: true }
  const { project_id } = project
  await service.store.tx((tx) =>
    tx.update(projects).set({ settings }).where(eq(projects.id, project_id)),
  )
  for (const body of ["Ü".repeat(70), "Ы".repeat(71)])
    expect((await project.post("/v1/sms", { to: "+436601234567", body })).status).toBe(201)
  const { data } = (await project.get("/v1/sms/stats?period=day")).body
  expect(data).toMatchObject({ total: 2, segments: 3, by_status: { queued: 2 }, by_provider: {} })
  expect((await other.get("/v1/sms/stats")).body.data).toMatchObject({ total: 0, segments: 0 })
  expect(refusal(await project.get("/v1/sms/stats?period=year"))).toEqual([422, "validation_error"])
})
