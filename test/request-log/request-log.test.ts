import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { consoleUsers } from "../../src/identity/tables"
import {
  type AnsweredRequest,
  purgeRequestLog,
  RequestLog,
} from "../../src/request-log/request-log"
import { requestLog } from "../../src/request-log/tables"
import { atRest } from "../harness/at-rest"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { mail } from "../harness/mail"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { testStore } from "../harness/store"

quietLog()
const clock = movableClock()

const service = await sharedService()
const { requests } = service.parts

const note = (more: Partial<AnsweredRequest> = {}): AnsweredRequest => ({
  request_id: "req_1",
  project_id: idFor("p"),
  is_anonymous: false,
  key_id: null,
  method: "GET",
  path: "/v1/emails",
  status: 200,
  duration_ms: 1,
  ip: "127.0.0.1",
  error_code: null,
  ...more,
})

const rowsOf = ({ store }: Pick<typeof service, "store">) => store.read.select().from(requestLog)

test("what was asked and answered is told, newest first", async () => {
  const project = await service.project()
  const headers = { "x-request-id": "req_of_mine" }
  await project.post("/v1/emails", mail(), headers)
  await project.get("/v1/emails/nobody?secret=1")
  await requests.flush()
  const { body } = await project.get("/v1/request-log")
  const [second, first] = body.data
  expect(first).toEqual({
    request_id: "req_of_mine",
    method: "POST",
    path: "/v1/emails",
    status: 201,
    duration_ms: expect.any(Number),
    key_id: project.key_id,
    ip: "127.0.0.1",
    error_code: null,
    created_at: expect.stringMatching(/Z$/),
  })
  expect(second).toMatchObject({ path: "/v1/emails/nobody", status: 404, error_code: "not_found" })
  expect(body.meta).toMatchObject({ total: 2, has_more: false })
  expect(body.data).toHaveLength(2) // reading the log is not in the log
})

test("filters, and pages by cursor", async () => {
  const project = await service.project()
  const other = await project.addKey()
  await project.get("/v1/emails")
  await project.get("/v1/emails/x/events")
  await project.get("/v1/emails-of-mine")
  await project.get("/v1/events", { "x-api-key": other.key, "x-request-id": "req_other_1" })
  await project.get("/v1/events?limit=0")
  await requests.flush()
  const paths = async (query: string) => {
    const { body } = await project.get(`/v1/request-log?${query}`)
    return body.data.map(({ path }: { path: string }) => path)
  }
  expect(await paths("status=4xx")).toEqual(["/v1/events", "/v1/emails/x/events"])
  expect(await paths("status=422")).toEqual(["/v1/events"])
  expect(await paths("path=/v1/emails")).toEqual(["/v1/emails/x/events", "/v1/emails"])
  expect(await paths("path=/v1/emails/")).toEqual(["/v1/emails/x/events"])
  expect(await paths(`key_id=${other.id}`)).toEqual(["/v1/events"])
  expect(await paths("request_id=req_other_1")).toEqual(["/v1/events"])
  expect(await paths("request_id=req_other_1&status=5xx")).toEqual([])
  expect(refusal(await project.get("/v1/request-log?status=9xx"))[0]).toBe(422)

  const page = await project.get("/v1/request-log?per_page=3")
  const rest = await project.get(`/v1/request-log?cursor=${page.body.meta.next_cursor}`)
  expect(page.body.data).toHaveLength(3)
  expect(rest.body.data.map(({ path }: { path: string }) => path)).toEqual(["/v1/emails"])
})

test("a project sees its own requests; the operator also what belongs to nobody", async () => {
  await using own = await testService()
  const project = await own.project()
  const { owner, account_id, project_id } = await team(own)
  await own.anybody.get("/v1/emails")
  await project.get("/v1/emails")
  await own.parts.requests.flush()
  const here = { "x-account-id": account_id }
  expect((await owner.get("/v1/request-log", here)).body.data).toEqual([])
  const operators = eq(consoleUsers.id, owner.id)
  await own.store.tx((tx) => tx.update(consoleUsers).set({ operator: true }).where(operators))
  const all = await owner.get("/v1/request-log", here)
  expect(all.body.data.map(({ status }: { status: number }) => status)).toEqual([200, 401])
  const chosen = await owner.get("/v1/request-log", { ...here, "x-project-id": project_id })
  expect(chosen.body.data).toEqual([])
})

test("no token, no query and nothing outside the API gets into it", async () => {
  await using own = await testService()
  await own.anybody.get("/v1/invitations/belfry_invitation_secret?x=secret")
  for (const path of ["/healthz", "/v1/health", "/docs", "/nowhere"]) await own.anybody.get(path)
  await own.parts.requests.flush()
  const rows = await rowsOf(own)
  expect(rows.map(({ path }) => path)).toEqual(["/v1/invitations/{token}"])
  expect(JSON.stringify(rows)).not.toContain("secret")
})

test("the token of a callback's address is not in it, whatever the answer was", async () => {
  await using own = await testService()
  const token = "k".repeat(43)
  const path = `/v1/callbacks/email/ses/${token}`
  const answers = [
    await own.anybody.post(path, {}),
    await own.anybody.post(path, "no JSON"),
    await own.anybody.get(path),
    await own.anybody.post(`${path}/`, {}),
    await own.anybody.post(`${path}/more`, {}),
  ]
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 404, 404, 404])
  for (const { text } of answers) expect(text).not.toContain(token)
  await own.parts.requests.flush()
  const rows = await rowsOf(own)
  expect(rows.map((row) => row.path)).toEqual([
    "/v1/callbacks/email/ses/{config_token}",
    "/v1/callbacks/email/ses/{config_token}",
  ])
  expect(await atRest(own)).not.toContain(token)
})

test("strangers cannot fill it", async () => {
  await using it = await testStore()
  const log = new RequestLog({ store: it.store, hasRoom: () => true })
  for (let n = 0; n < 1000; n++) log.add(note({ is_anonymous: true, project_id: null }))
  await log.flush()
  expect(await rowsOf(it)).toHaveLength(10)
})

test("a flood is kept in part: what failed, and some of what succeeded", async () => {
  await using it = await testStore()
  const log = new RequestLog({ store: it.store, hasRoom: () => true })
  for (let n = 0; n < 4000; n++) log.add(note({ status: n % 4 === 0 ? 422 : 201 }))
  await log.flush()
  const statuses = (await rowsOf(it)).map(({ status }) => status)
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length
  expect([count(422), count(201)]).toEqual([1000, 1000])
  log.add(note())
  await log.flush()
  expect(await rowsOf(it)).toHaveLength(2001)
})

test("what the storage cannot take is dropped, and nothing waits or grows", async () => {
  await using it = await testStore()
  let has_room = false
  const log = new RequestLog({ store: it.store, hasRoom: () => has_room })
  for (let n = 0; n < 30_000; n++) log.add(note())
  await log.flush()
  expect(await rowsOf(it)).toEqual([])
  has_room = true
  log.add(note({ request_id: "req_2" }))
  await log.flush()
  expect((await rowsOf(it)).map(({ request_id }) => request_id)).toEqual(["req_2"])

  const broken = { ...it.store, tx: () => Promise.reject(new Error("disk")) }
  const unwell = new RequestLog({ store: broken, hasRoom: () => true })
  for (let n = 0; n < 500; n++) unwell.add(note())
  await unwell.flush() // resolves
})

test("ten thousand notes are kept whole, whoever flushes meanwhile", async () => {
  await using it = await testStore()
  const log = new RequestLog({ store: it.store, hasRoom: () => true })
  const flushes: Promise<void>[] = []
  for (let n = 0; n < 10_000; n++) {
    log.add(note({ request_id: `req_${n}`, status: 404, path: `/v1/${"x".repeat(500)}` }))
    if (n % 1000 === 0) flushes.push(log.flush())
  }
  await Promise.all(flushes)
  await log.flush()
  const rows = await rowsOf(it)
  expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(10_000)
  expect(rows[0]?.path).toHaveLength(200)
})

test("after seven days it is forgotten, some at a time", async () => {
  await using it = await testStore()
  const log = new RequestLog({ store: it.store, hasRoom: () => true })
  for (let n = 0; n < 1200; n++) log.add(note({ status: 404 }))
  await log.flush()
  clock.advance({ seconds: 8 * 86_400 })
  log.add(note({ request_id: "req_new" }))
  await log.flush()
  const week = secondsFromNow(-7 * 86_400)
  const gone: number[] = []
  do gone.push(await purgeRequestLog(it.store, week))
  while (gone.at(-1))
  expect(gone).toEqual([500, 500, 200, 0])
  expect((await rowsOf(it)).map(({ request_id }) => request_id)).toEqual(["req_new"])
})
