import { describe, expect, test } from "bun:test"
import { pathOf, queryOf, routable } from "../../src/http/target"
import { say as sayTo } from "../harness/raw-request"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { port } = service.listen()

const say = (...lines: string[]) => sayTo(port, ...lines)

const HOSTS = ["x", "api", "", "a b%[", "x/y", "x?y", "user@x", "x:99999", "x".repeat(300)]

describe.each(HOSTS)("a request to the host %j", (host) => {
  test.each([
    ["/v1/health", 200, '"data"'],
    ["/healthz", 200, '"status"'],
    ["/v1/emails?page=1", 401, "unauthorized"],
    ["/v1/emails/some/content", 401, "unauthorized"],
    ["/v1/nope", 404, "There is no path /v1/nope."],
    ["/ab/v1/health", 404, "There is no path /ab/v1/health."],
    ["//v1/health", 404, "There is no path"],
    ["/v1//health", 200, '"status":"ok"'],
    ["/v1///health?a=b//c", 200, '"status":"ok"'],
  ])("of %s is answered with %d", async (path, status, words) => {
    const answer = await say(`GET ${path} HTTP/1.1`, `Host: ${host}`)
    expect(answer).toStartWith(`HTTP/1.1 ${status} `)
    expect(answer).toContain(words)
    expect(answer.toLowerCase()).toContain("content-type: application/json")
  })
})

test("an old client that names no host is served, and never with a page of sources", async () => {
  expect(await say("GET /healthz HTTP/1.0")).toContain(" 200 ")
  const absent = await say("GET /v1/nope HTTP/1.0")
  expect(absent).toContain(" 404 ")
  expect(absent).not.toContain("<html")
  expect(await say("GET /v1/nope HTTP/1.1")).toStartWith("HTTP/1.1 400 ")
})

test.each([
  "Host: a.test|Host: b.test",
  "Host: a.test|Host: a.test",
  "Host: a.test|X-Other: 1|host: b.test",
  "Host:|Host: b.test",
  "Host: a.test|Host:",
])("a request with two hosts is refused: %s", async (lines) => {
  const hosts = lines.split("|")
  const answer = await say("GET /v1/health HTTP/1.1", ...hosts)
  expect(answer).toStartWith("HTTP/1.1 400 ")
  expect(answer).toContain("more than one Host header")
  expect(await say("GET /v1/health HTTP/1.1", "Host: a.test")).toStartWith("HTTP/1.1 200 ")
})

test.each([
  ["http://x/a/b?c=d", "/a/b", "d"],
  ["/a?c=http://x/y", "/a", "http://x/y"],
  ["http://long.example.test:8080/?c=", "/", ""],
  ["http://x", "/", null],
])("%s asks for %s", (url, path, value) => {
  expect([pathOf({ url }), queryOf({ url }).get("c")]).toEqual([path, value])
})

test("a request that the router can read is left as it is", () => {
  const request = new Request("http://localhost/v1/emails?x=1")
  expect(routable(request).url).toBe("http://localhost/v1/emails?x=1")
  expect(routable(new Request("http://x/v1?y")).url).toBe("http://localhost/v1?y")
})
