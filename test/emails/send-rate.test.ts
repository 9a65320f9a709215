import { expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()

/** Few enough a second that no slow machine drains it meanwhile. */
const slow = () => service.project({ limits: { sends_per_second: 1, emails_per_month: 100 } })

const send = (project: Awaited<ReturnType<typeof slow>>) => project.post("/v1/emails", mail())

test("more sends a second than the plan has are 429, and count no quota", async () => {
  const project = await slow()
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(project)))
  const sent = answers.filter(({ status }) => status === 201).length
  const refused = answers.filter(({ status }) => status === 429)
  expect([sent + refused.length, sent >= 1, sent <= 3]).toEqual([20, true, true])
  expect(refusal(refused[0] ?? (await send(project)))).toEqual([429, "rate_limited"])
  expect(refused[0]?.headers.get("retry-after")).toBe("1")
  const { email } = (await project.get("/v1/usage")).body.data
  expect(email.used).toBe(sent)
})

test("a batch takes its number at once, or waits as a whole", async () => {
  const project = await slow()
  const batch = (count: number) => ({ messages: Array.from({ length: count }, () => mail()) })
  const post = (count: number) => project.post("/v1/emails/batch", batch(count))
  expect((await post(50)).body.data).toMatchObject({ succeeded: 50 })
  const waiting = await post(1)
  expect(refusal(waiting)).toEqual([429, "rate_limited"])
  expect(waiting.body.error.details.retry_after).toBeGreaterThan(30)
  clock.advance({ seconds: 51 })
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
