import { afterAll, expect, test } from "bun:test"
import { clock } from "../../src/core/time"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

/** A clock that stands still, so that a slow machine drains no bucket meanwhile. */
const { read } = clock
let time = Date.now()
clock.read = () => time
afterAll(() => {
  clock.read = read
})

const slow = () => service.project({ limits: { sends_per_second: 1, emails_per_month: 100 } })

const send = (project: Awaited<ReturnType<typeof slow>>) => project.post("/v1/emails", mail())

test("more sends a second than the plan has are 429, and count no quota", async () => {
  const project = await slow()
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(project)))
  const sent = answers.filter(({ status }) => status === 201).length
  const refused = answers.filter(({ status }) => status === 429)
  expect([sent, refused.length]).toEqual([1, 19])
  expect(refusal(refused[0] ?? (await send(project)))).toEqual([429, "rate_limited"])
  expect(refused[0]?.headers.get("retry-after")).toBe("1")
  const { email } = (await project.get("/v1/usage")).body.data
  expect(email.used).toBe(1)
})

test("a batch takes its number at once, or waits as a whole", async () => {
  const project = await slow()
  const batch = (count: number) => ({ messages: Array.from({ length: count }, () => mail()) })
  const post = (count: number) => project.post("/v1/emails/batch", batch(count))
  expect((await post(50)).body.data).toMatchObject({ succeeded: 50 })
  const waiting = await post(1)
  expect(refusal(waiting)).toEqual([429, "rate_limited"])
  expect(waiting.body.error.details.retry_after).toBe(50)
  time += 50_000
  expect((await post(40)).body.data).toMatchObject({ succeeded: 40 })
  const { email } = (await project.get("/v1/usage")).body.data
  expect(email).toMatchObject({ used: 90, remaining: 10 })
})

test("the quota of the month is told first", async () => {
  const limits = { sends_per_second: 1, emails_per_month: 0 }
  const project = await service.project({ limits })
  for (let count = 0; count < 3; count++) {
    expect(refusal(await send(project))).toEqual([402, "payment_required"])
  }
})
