import { expect } from "bun:test"
import { codes, isErrorCode } from "../../src/core/errors"
import { sleep } from "../../src/core/time"
import type { Reply } from "../harness/client"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { NEVER_MS } from "../harness/waits"

/** Of a whole test, at the sizes of a release. */
export const PATIENCE_MS = 300_000

export const run = { seed: 20, numRuns: Math.ceil(sizes.fuzz / 5) }
export const sample = <Value>(
  arbitrary: fc.Arbitrary<Value>,
  check: (value: Value) => Promise<unknown>,
) =>
  fc.assert(
    fc.asyncProperty(arbitrary, async (value) => void (await check(value))),
    run,
  )

/** Every answer is one: in time, no 500, in the form that all answers have. */
export async function judged(asked: Promise<Reply>): Promise<Reply> {
  const stop = new AbortController()
  const late = sleep(NEVER_MS, stop.signal).then(() => undefined)
  const answer = await Promise.race([asked, late])
  stop.abort()
  if (!answer) throw new Error(`no answer within ${NEVER_MS} ms`)
  const { status, body } = answer
  expect(status).toBeLessThan(500)
  expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9_-]{8,64}$/)
  if (status >= 400 && body) {
    expect(body.meta.request_id).toBe(answer.headers.get("x-request-id"))
    const { code, details } = body.error
    expect(isErrorCode(code) && codes[code][0]).toBe(status as never)
    expect(details).toBeObject()
  }
  return answer
}
