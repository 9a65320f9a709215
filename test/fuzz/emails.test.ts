import { expect, test } from "bun:test"
import fc from "fast-check"
import PostalMime from "postal-mime"
import { codes, isErrorCode } from "../../src/core/errors"
import { sleep } from "../../src/core/time"
import type { Reply } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { headers, hostile, method, nearly, path, query, wellFormed } from "./requests"

/** Nobody waits for this long: a request that takes it hangs. */
const DEADLINE_MS = 10_000

/** Of a whole test, at the sizes of a release. */
const PATIENCE_MS = 300_000

const service = await sharedService()
const run = { seed: 20, numRuns: Math.ceil(sizes.fuzz / 5) }
const sample = <Value>(arbitrary: fc.Arbitrary<Value>, check: (value: Value) => Promise<unknown>) =>
  fc.assert(
    fc.asyncProperty(arbitrary, async (value) => void (await check(value))),
    run,
  )

/** Every answer is one: in time, no 500, in the form that all answers have. */
async function judged(asked: Promise<Reply>): Promise<Reply> {
  const stop = new AbortController()
  const late = sleep(DEADLINE_MS, stop.signal).then(() => undefined)
  const answer = await Promise.race([asked, late])
  stop.abort()
  if (!answer) throw new Error(`no answer within ${DEADLINE_MS} ms`)
  const { status, body } = answer
  expect(status).toBeLessThan(500)
  expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9_-]{8,64}$/)
  if (status >= 400 && body) {
    expect(body.meta.request_id).toBe(answer.headers.get("x-request-id"))
    const { code, details } = body.error
    expect(isErrorCode(code) && codes[code].status).toBe(status as never)
    expect(details).toBeObject()
  }
  return answer
}

test(
  "what is well-formed is taken, and comes out as it went in",
  async () => {
    const project = await service.project()
    const subjects = new Map<string, string>()
    await sample(wellFormed, async (body) => {
      const { status, body: answer } = await judged(project.post("/v1/emails", body))
      expect([status, answer.error]).toEqual([201, undefined])
      subjects.set(answer.id, body.subject as string)
      const read = await judged(project.get(`/v1/emails/${answer.id}`))
      expect(read.body.data).toMatchObject({ subject: body.subject, text: body.text })
    })
    const handed = await deliverAll(service)
    expect(handed.map(({ message_id }) => message_id).sort()).toEqual([...subjects.keys()].sort())
    for (const { message_id, raw, to } of handed) {
      const { from, to: named, cc = [], bcc, subject } = await PostalMime.parse(raw)
      expect(subject).toBe(subjects.get(message_id))
      expect(from?.address).toBe("bell@example.test")
      expect(bcc).toBeUndefined()
      const visible = [...(named ?? []), ...cc].map(({ address }) => address)
      expect(to).toEqual(expect.arrayContaining(visible))
      expect(Buffer.from(raw).toString("latin1")).not.toMatch(/[^\r]\n|\r[^\n]|\0/)
    }
  },
  PATIENCE_MS,
)

test(
  "what is nearly well-formed is taken or refused",
  async () => {
    const project = await service.project()
    await sample(nearly, async (body) => {
      const { status } = await judged(project.post("/v1/emails", JSON.stringify(body)))
      expect([201, 400, 413, 422]).toContain(status)
    })
    await deliverAll(service)
    const { body } = await project.get("/v1/emails?status=failed")
    expect(body.data).toEqual([]) // what was taken can be composed
  },
  PATIENCE_MS,
)

test(
  "batches of all kinds are answered",
  async () => {
    const project = await service.project()
    const list = fc.array(fc.oneof(wellFormed, nearly), { maxLength: 5 })
    const batch = fc.oneof(
      list,
      list.map((messages) => ({ messages })),
    )
    await sample(fc.tuple(batch, headers), async ([body, extra]) => {
      const text = JSON.stringify(body)
      await judged(project.post("/v1/emails/batch", text, { ...extra }))
    })
  },
  PATIENCE_MS,
)

test(
  "hostile bodies and headers are refused or ignored",
  async () => {
    const project = await service.project()
    const where = fc.constantFrom("/v1/emails", "/v1/emails/batch", "/v1/api-keys")
    await sample(fc.tuple(where, hostile, headers), ([to, body, extra]) =>
      judged(project.post(to, body, { ...extra })),
    )
  },
  PATIENCE_MS,
)

test(
  "paths, methods and queries of all kinds are answered",
  async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", { ...fc.sample(wellFormed, run)[0] })).body
    const known = fc.constantFrom("/v1/emails", "/v1/events", "/v1/mailbox", `/v1/emails/${id}`)
    const asked = fc.tuple(method, fc.oneof(known, path), query)
    await sample(asked, ([verb, where, search]) => judged(project.call(verb, `${where}?${search}`)))
  },
  PATIENCE_MS,
)
