import { expect, test } from "bun:test"
import { messageOf, refusalOf } from "../../src/console/requests"

test("a refusal keeps the words of the server and the id of the request", () => {
  const body = {
    error: { code: "not_found", message: "There is no mail x.", details: { reason: "gone" } },
    meta: { request_id: "req_12345678" },
  }
  const error = refusalOf(404, JSON.stringify(body))
  expect(error).toMatchObject({ status: 404, code: "not_found", request_id: "req_12345678" })
  expect(messageOf(error)).toBe("There is no mail x.")
  expect(error.details).toEqual({ reason: "gone" })
})

test("an answer that is no JSON is told by its status", () => {
  for (const body of ["<html>Bad gateway</html>", "", "null"]) {
    const error = refusalOf(502, body)
    expect([error.status, error.code]).toEqual([502, "bad_answer"])
    expect(error.message).toContain("502")
  }
})
