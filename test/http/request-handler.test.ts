import { describe, expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const listener = service.listen()

test.each(["/v1", "/v1/", "/v1/nothing", "/v1/workspaces", "/V1/emails", "/metrics", "/v2/emails"])(
  "%s is not there, with a credential or without",
  async (path) => {
    const project = await service.project()
    for (const { get } of [project, service.anybody]) {
      const absent = await get(path)
      expect(refusal(absent)).toEqual([404, "not_found"])
      expect(absent.headers.has("allow")).toBe(false)
    }
  },
)

test("a person who follows a wrong link gets a page, and a program the error", async () => {
  const ask = (path: string, accept: string, method = "GET") =>
    fetch(new URL(path, listener.url), { method, headers: { accept } })
  const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
  const page = await ask("/nothing/<b>here</b>", browser)
  expect(page.status).toBe(404)
  expect(page.headers.get("content-type")).toStartWith("text/html")
  expect(page.headers.get("content-security-policy")).toStartWith("default-src 'none'")
  const text = await page.text()
  expect(text).toContain("There is no path")
  for (const way of ["/docs", "/"]) expect(text).toContain(`<a href="${way}">`)
  expect(text).not.toContain("<b>here")
  for (const [path, accept, method] of [
    ["/nothing", "*/*"],
    ["/nothing", browser, "POST"],
    ["/v1/nothing", browser],
    ["/v1", browser],
  ] as const) {
    const answer = await ask(path, accept, method)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: "not_found" } })
  }
})

test.each([
  ["PUT", "/v1/emails", "GET, HEAD, POST"],
  ["PATCH", "/v1/emails", "GET, HEAD, POST"],
  ["GET", "/v1/emails/batch/none/none", null],
  ["PUT", `/v1/api-keys/${NOBODY}`, "GET, HEAD, PATCH, DELETE"],
  ["POST", "/healthz", "GET, HEAD"],
  ["GET", `/v1/emails/${NOBODY}/cancel`, "POST"],
  ["PATCH", "/v1/subscribers/bulk", "POST"],
  ["DELETE", "/v1/subscribers/categories", "GET, HEAD, POST"],
  ["HEAD", "/v1/emails/batch", "POST"],
  ["GET", "/v1/emails/batch", "POST"],
  ["GET", `/v1/webhooks/${NOBODY}/deliveries/bulk-retry`, "POST"],
])("%s %s is 404 and names the methods there are", async (method, path, allow) => {
  const refused = await service.anybody.call(method, path)
  expect(refusal(refused)).toEqual([404, "not_found"])
  const allowed = refused.headers.get("allow")?.split(", ").sort() ?? null
  expect(allowed).toEqual(allow?.split(", ").sort() ?? null)
})

describe("what only looks like a path", () => {
  test.each([
    "/v1/emails/%E0%A4%A",
    "/v1/emails/%00",
    "/v1/api-keys/%00",
    "/v1/emails/..%2f",
    "/v1/emails/%ff",
  ])("%s is 404", async (path) => {
    const project = await service.project()
    expect(refusal(await project.get(path))).toEqual([404, "not_found"])
  })

  test("a slash at the end is another path", async () => {
    const project = await service.project()
    expect((await project.get("/v1/api-keys/")).status).toBe(404)
  })
})

describe("browsers of other origins", () => {
  test("are told nothing", async () => {
    const project = await service.project()
    const headers = { origin: "https://elsewhere.test" }
    for (const answer of [
      await project.get("/v1/emails", headers),
      await service.anybody.get("/v1/health", headers),
      await service.anybody.get("/v1/nothing", headers),
    ]) {
      const names = [...answer.headers.keys()].filter((name) => name.startsWith("access-control"))
      expect(names).toEqual([])
    }
  })

  test("get 404 for their question", async () => {
    const headers = { origin: "https://elsewhere.test", "access-control-request-method": "POST" }
    const refused = await service.anybody.call("OPTIONS", "/v1/emails", { headers })
    expect(refusal(refused)).toEqual([404, "not_found"])
    expect(refused.headers.has("access-control-allow-origin")).toBe(false)
  })
})

describe("HEAD", () => {
  test.each(["/healthz", "/v1/health", "/v1/emails", "/docs"])(
    "%s is GET without body",
    async (path) => {
      const { key } = await service.project()
      const headers = { "x-api-key": key }
      const response = await fetch(`${listener.url}${path}`, { method: "HEAD", headers })
      const { status } = await fetch(`${listener.url}${path}`, { headers })
      expect([response.status, await response.text()]).toEqual([status, ""])
      expect(response.headers.get("content-type")).toBeTruthy()
    },
  )

  test("is refused like GET", async () => {
    const response = await fetch(`${listener.url}/v1/emails`, { method: "HEAD" })
    expect([response.status, await response.text()]).toEqual([401, ""])
  })

  test("of a path that only takes POST is 404", async () => {
    const response = await fetch(`${listener.url}/v1/emails/${NOBODY}/cancel`, { method: "HEAD" })
    expect(response.status).toBe(404)
  })
})
