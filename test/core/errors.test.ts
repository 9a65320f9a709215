import { describe, expect, test } from "bun:test"
import { ApiError, codes, fail, isErrorCode } from "../../src/core/errors"

describe("errors", () => {
  test("fail throws the code with its status and details", () => {
    const thrown = caught(() => fail("suppressed_recipient", "No.", { address: "a@b.c" }))
    expect(thrown).toMatchObject({ code: "suppressed_recipient", status: 422, message: "No." })
    expect(thrown).toMatchObject({ name: "ApiError", details: { address: "a@b.c" } })
  })

  test("an error can carry headers, and the status its code has on another route", () => {
    const error = new ApiError(
      "invalid_email",
      "No.",
      {},
      { status: 400, headers: { Allow: "GET" } },
    )
    expect(error).toMatchObject({ status: 400, headers: { Allow: "GET" } })
  })

  test("every code has a status that is an error", () => {
    expect(Object.keys(codes)).toHaveLength(82)
    for (const [status] of Object.values(codes)) expect(status).toBeWithin(400, 505)
    expect(isErrorCode("conflict")).toBe(true)
    expect(isErrorCode("toString")).toBe(false)
    expect(isErrorCode(undefined)).toBe(false)
  })
})

function caught(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}
