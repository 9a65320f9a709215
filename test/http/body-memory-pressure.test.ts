import { expect, test } from "bun:test"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { type OpenRequest, openRequest } from "../harness/raw-request"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()

const MB = 1_048_576

/** Milliseconds. It stands still, so that no body is slow because the machine is. */
const time = { at: 0 }

/** 32 for small bodies as always, and 4 for large ones. */
const service = await sharedService({
  body_memory_mb: 36,
  body_time: () => time.at,
  time_limit_ms: 20_000,
})
const { port } = service.listen()

/** A mail whose JSON has exactly so many bytes. */
function mailOf(bytes: number): string {
  const empty = JSON.stringify(mail({ text: "" }))
  return JSON.stringify(mail({ text: "x".repeat(bytes - empty.length) }))
}

const headOf = ({ key }: TestProject, ...more: string[]) => [
  "POST /v1/emails HTTP/1.1",
  "Host: localhost",
  `X-API-Key: ${key}`,
  "Content-Type: application/json",
  ...more,
]

const begin = (project: TestProject, bytes: number) =>
  openRequest(port, headOf(project, `Content-Length: ${bytes}`))

const unavailable = (reason: string) => ({
  status: 503,
  body: { error: { code: "service_unavailable", details: { reason, retry_after: 1 } } },
})

/** The server shares our event loop, and reads up to half a megabyte at each of its turns. */
async function sendRead(request: OpenRequest, text: string) {
  await request.send(text)
  for (let turn = 0; turn < 40; turn++) await Bun.sleep(1)
}

/** Asks with a body of 2 MB until the answer has this status; the last try is judged. */
async function askUntil(status: number, project: TestProject) {
  for (let tries = 0; ; tries++) {
    using request = await begin(project, 2 * MB)
    await request.send(mailOf(2 * MB))
    const answer = await request.answer
    if (answer.status === status || tries === 50) return answer
    await Bun.sleep(50)
  }
}

test("one body after another fits, and what breaks off gives its room back", async () => {
  const [one, other] = [await service.project(), await service.project()]
  for (let turn = 0; turn < 5; turn++) {
    using broken = await begin(one, 4 * MB)
    await sendRead(broken, mailOf(4 * MB).slice(0, 3 * MB))
    expect(await askUntil(503, other)).toMatchObject(unavailable("body_memory"))
    broken.cut()
    expect((await askUntil(201, other)).status).toBe(201)
  }
})

test("what does not fit is refused, and what a project has too much", async () => {
  const [one, other] = [await service.project(), await service.project()]
  using first = await begin(one, 4 * MB)
  await sendRead(first, mailOf(4 * MB).slice(0, 3.5 * MB))
  const refused = await askUntil(503, one)
  expect(refused).toMatchObject(unavailable("project_body_memory"))
  expect(refused.headers.toLowerCase()).toContain("retry-after: 1")
  expect(await askUntil(503, other)).toMatchObject(unavailable("body_memory"))

  const small = await one.post("/v1/emails", mailOf(MB))
  expect(small.status).toBe(201)
  await first.send(mailOf(4 * MB).slice(3.5 * MB))
  expect((await first.answer).status).toBe(201)
})

test("what is only announced takes no room", async () => {
  const [one, other] = [await service.project(), await service.project()]
  const announced = await Promise.all(Array.from({ length: 20 }, () => begin(one, 10 * MB)))
  using real = await begin(other, 3 * MB)
  await real.send(mailOf(3 * MB))
  expect((await real.answer).status).toBe(201)
  for (const request of announced) request.cut()
})

test("in chunks, too, bytes are counted as they come", async () => {
  const [one, other] = [await service.project(), await service.project()]
  using first = await begin(one, 4 * MB)
  await sendRead(first, mailOf(4 * MB).slice(0, 3 * MB))
  expect((await askUntil(503, other)).status).toBe(503)
  using second = await openRequest(port, headOf(other, "Transfer-Encoding: chunked"))
  await second.send(`${(2 * MB).toString(16)}\r\n${mailOf(2 * MB)}\r\n0\r\n\r\n`)
  expect(await second.answer).toMatchObject(unavailable("body_memory"))
})

test("a body that stalls gives way to one that comes", async () => {
  const [one, other] = [await service.project(), await service.project()]
  using stalled = await begin(one, 4 * MB)
  await sendRead(stalled, mailOf(4 * MB).slice(0, 3.9 * MB))
  expect(await askUntil(503, other)).toMatchObject(unavailable("body_memory"))
  time.at += 2100 // slower than 64 KB a second is judged over two seconds
  expect((await askUntil(201, other)).status).toBe(201)
  expect(await stalled.answer).toMatchObject(unavailable("slow_body"))
})
