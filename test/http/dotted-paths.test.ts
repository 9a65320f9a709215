import { beforeAll, describe, expect, test } from "bun:test"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { say } from "../harness/raw-request"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const clock = movableClock()
const { port } = service.listen()

/** Every spelling leads to `/v1/emails`. */
const SPELLINGS = [
  "/v1/domains/../emails",
  "/v1/domains/%2e%2e/emails",
  "/v1/domains/.%2E/emails",
  "/v1/./emails",
  "/v1/%2e/emails",
  "/v1\\emails",
  "/v1/domains/..\\emails",
  "/healthz/../v1/emails",
  "/v1/auth/x/../../emails",
  "/../../v1/emails",
  "/v1//emails",
  "/v1/emails#/../domains",
  "http://other.test/v1/domains/../emails",
]

/** The runtime resolves paths behind a host that makes a URL, and leaves them alone behind others. */
const HOSTS = ["localhost", "x", "a b%[", ""]

const header = (answer: string, name: string) =>
  new RegExp(`^${name}: (.*)$`, "mi").exec(answer)?.[1]?.trim()

describe.each(HOSTS)("behind the host %j", (host) => {
  let free: TestProject
  beforeAll(async () => {
    free = await service.project({ plan: "free" })
  })

  test.each(SPELLINGS)("%s is guarded as the path that it leads to", async (path) => {
    const stranger = await say(port, `GET ${path} HTTP/1.1`, `Host: ${host}`)
    expect(stranger).toStartWith("HTTP/1.1 401 ")

    const { key } = await free.addKey({ scopes: ["domains:read"] })
    const narrow = await say(port, `GET ${path} HTTP/1.1`, `Host: ${host}`, `X-API-Key: ${key}`)
    expect(narrow).toStartWith("HTTP/1.1 403 ")
    expect(narrow).toContain('"required_scope":"email:read"')
  })

  test("all spellings take from the same window, and the log names the path they lead to", async () => {
    clock.freeze() // the minute of a window may end between two requests
    const project = await service.project({ plan: "free" })
    const remaining: string[] = []
    for (const path of SPELLINGS) {
      const credential = `X-API-Key: ${project.key}`
      const answer = await say(port, `GET ${path} HTTP/1.1`, `Host: ${host}`, credential)
      expect(answer).toStartWith("HTTP/1.1 200 ")
      remaining.push(header(answer, "x-ratelimit-remaining") ?? "")
    }
    expect(remaining).toEqual(SPELLINGS.map((_, at) => String(59 - at)))

    await service.parts.requests.flush()
    const { body } = await project.get("/v1/request-log")
    const logged = body.data.map((entry: { path: string }) => entry.path)
    expect(logged).toEqual(SPELLINGS.map(() => "/v1/emails"))
  })

  test.each(SPELLINGS)("%s and its path share an Idempotency-Key", async (path) => {
    const project = await service.project()
    const body = JSON.stringify(mail())
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${host}`,
      `X-API-Key: ${project.key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "Idempotency-Key: once",
    ]
    expect(await say(port, ...head, body)).toStartWith("HTTP/1.1 201 ")
    const again = await project.post("/v1/emails", mail(), { "idempotency-key": "once" })
    expect(again.headers.get("idempotent-replayed")).toBe("true")
  })

  test.each([
    "//v1/emails",
    "/v1/emails/",
    "/v1/domains/..;/emails",
    "/v1/domains/..%2femails",
    "/..//v1/emails",
    "/v1/%65mails",
  ])("%s leads nowhere", async (path) => {
    const credential = `X-API-Key: ${free.key}`
    const answer = await say(port, `GET ${path} HTTP/1.1`, `Host: ${host}`, credential)
    expect(answer).toStartWith("HTTP/1.1 404 ")
  })
})
