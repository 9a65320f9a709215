import { beforeAll, describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { bounced, deliverAll, delivered } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const project = await service.project()
let batch_id = ""
let times: string[] = []

const subjects = async (query: string) => {
  const { status, body } = await project.get(`/v1/emails?${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  const found = body.data.map(({ subject }: { subject: string }) => subject)
  expect(body.meta.total).toBe(found.length)
  return found.sort()
}

beforeAll(async () => {
  await project.post("/v1/emails", mail({ subject: "Welcome 100% _free_", tags: ["a", "b"] }))
  await project.post(
    "/v1/emails",
    mail({ subject: "Bounce", to: "gone@example.test", tags: ["b"] }),
  )
  await deliverAll(service, (email) => (email.startsWith("gone") ? bounced : delivered)(email))
  clock.advance({ seconds: 10 })
  const from = "Mailbox <Desk@mailbox.test>"
  const list = [mail({ subject: "Receipt", to: "Bob <BOB@münchen.test>", from })]
  batch_id = (await project.post("/v1/emails/batch", list)).body.id
  const rows = (await project.get("/v1/emails")).body.data
  times = rows.map(({ created_at }: { created_at: string }) => created_at)

  const foreign = await service.project()
  await foreign.post("/v1/emails", mail({ subject: "Foreign", tags: ["a"] }))
})

describe("filters", () => {
  test.each<[string, string[]]>([
    ["", ["Bounce", "Receipt", "Welcome 100% _free_"]],
    ["status=queued", ["Receipt"]],
    ["status=sending", []],
    ["status=sent", []],
    ["status=delivered", ["Welcome 100% _free_"]],
    ["status=bounced", ["Bounce"]],
    ["status=failed", []],
    ["to=gone@example.test", ["Bounce"]],
    ["to=GONE%40Example.TEST", ["Bounce"]],
    ["to=bob@xn--mnchen-3ya.test", ["Receipt"]],
    ["to=Bob%20<bob@münchen.test>", ["Receipt"]],
    ["domain=MAILBOX.test", ["Receipt"]],
    ["from=desk@mailbox.test", ["Receipt"]],
    ["from=bell@example.test", ["Bounce", "Welcome 100% _free_"]],
    ["tag=b", ["Bounce", "Welcome 100% _free_"]],
    ["tag=a", ["Welcome 100% _free_"]],
    ["tag=B", []],
    ["domain=mailbox.test", ["Receipt"]],
    ["domain=EXAMPLE.test", ["Bounce", "Welcome 100% _free_"]],
    ["subject=WEL", ["Welcome 100% _free_"]],
    ["subject=100%25", ["Welcome 100% _free_"]],
    ["subject=%25", ["Welcome 100% _free_"]],
    ["subject=_", ["Welcome 100% _free_"]],
    ["subject=%5C", []],
    ["subject='", []],
    ["stream=transactional", ["Bounce", "Receipt", "Welcome 100% _free_"]],
    ["stream=broadcast", []],
    [`template_id=${NOBODY}`, []],
    [`batch_id=${NOBODY}`, []],
    ["tag=b&status=bounced", ["Bounce"]],
    ["tag=a&status=bounced", []],
    ["to=bob@münchen.test&from=desk@mailbox.test&subject=rec", ["Receipt"]],
  ])("%s", async (query, expected) => {
    expect(await subjects(query)).toEqual(expected)
  })

  test("by batch", async () => {
    expect(await subjects(`batch_id=${batch_id}`)).toEqual(["Receipt"])
  })

  test("by time: from the lower bound on, up to the upper one", async () => {
    const [newest = "", , oldest = ""] = times.map(encodeURIComponent)
    expect(await subjects(`created_after=${newest}`)).toEqual(["Receipt"])
    expect(await subjects(`created_before=${newest}`)).toEqual(["Bounce", "Welcome 100% _free_"])
    expect(await subjects(`start_date=${oldest}&end_date=${newest}`)).toHaveLength(2)
    expect(await subjects(`created_before=${oldest}`)).toEqual([])
    const zoned = encodeURIComponent((times[0] ?? "").replace("Z", "+00:00"))
    expect(await subjects(`created_after=${zoned}`)).toEqual(["Receipt"])
  })
})

test.each([
  "status=lost",
  "status=",
  "status=QUEUED",
  "stream=other",
  "created_after=yesterday",
  "created_before=2026-11-21",
  "start_date=2026-11-21T10:00:00",
  "end_date=",
  `to=${"x".repeat(255)}`,
  `tag=${"x".repeat(101)}`,
])("%.40s is refused", async (query) => {
  const refused = await project.get(`/v1/emails?${query}`)
  expect(refusal(refused)).toEqual([422, "validation_error"])
  expect(complaints(refused)).toEqual([query.split("=")[0] ?? ""])
})

test.each(["to", "from", "tag", "domain", "subject", "batch_id", "template_id", "cursor"])(
  "%s may hold anything without breaking",
  async (name) => {
    for (const text of ["%00", "%27%3B--", "%F0%9F%98%80", "%ff", "%5C", "%EF%BF%BF"]) {
      const { status } = await project.get(`/v1/emails?${name}=a${text}`)
      expect([text, [200, 422]]).toEqual([text, expect.arrayContaining([status])])
    }
  },
)

test("rows have no bodies, headers or timeline", async () => {
  const { body } = await project.get("/v1/emails?status=delivered")
  const [row] = body.data
  for (const name of ["html", "text", "headers", "timeline"]) expect(row).not.toHaveProperty(name)
  const { data } = (await project.get(`/v1/emails/${row.id}`)).body
  const { html, text, headers, timeline, ...rest } = data
  expect(row).toEqual(rest)
})

test("totals of a status follow the emails through their lives", async () => {
  await using own = await testService()
  const { get, post } = await own.project()
  const totals = async () => {
    const of = async (query: string) => (await get(`/v1/emails${query}`)).body.meta.total
    const names = ["queued", "sending", "delivered", "bounced", "failed"]
    return [await of(""), ...(await Promise.all(names.map((name) => of(`?status=${name}`))))]
  }
  expect(await totals()).toEqual([0, 0, 0, 0, 0, 0])
  const list = [mail(), mail({ to: "gone@example.test" }), mail()]
  const { data } = (await post("/v1/emails/batch", list)).body
  expect(await totals()).toEqual([3, 3, 0, 0, 0, 0])
  await post(`/v1/emails/${data[2].id}/cancel`)
  expect(await totals()).toEqual([3, 2, 0, 0, 0, 1])
  await deliverAll(own, (email) => (email.startsWith("gone") ? bounced : delivered)(email))
  expect(await totals()).toEqual([3, 0, 0, 1, 1, 1])
})

test("addresses and domains that cannot be read are refused", async () => {
  for (const [query, code] of [
    ["to=bob", "invalid_email"],
    ["from=a@example.test,b@example.test", "invalid_email"],
    ["domain=no%20domain", "validation_error"],
    ["to=bob&domain=x", "validation_error"],
  ]) {
    const refused = await project.get(`/v1/emails?${query}`)
    expect([query, ...refusal(refused)]).toEqual([query, 422, code])
  }
  expect((await project.get("/v1/emails?domain=bücher.test")).body.data).toEqual([])
})

test.each(["Ärger", "ärger", "ÜBUNG", "übung", "rger mit", "A\u0308RGER"])(
  "%s is found in a subject of any case",
  async (text) => {
    const other = await service.project()
    const { id } = (await other.post("/v1/emails", mail({ subject: "Ärger mit ÜBUNG" }))).body
    const { body } = await other.get(`/v1/emails?subject=${encodeURIComponent(text)}`)
    expect(body.data).toMatchObject([{ id, subject: "Ärger mit ÜBUNG" }])
    expect(body.data[0]).not.toHaveProperty("subject_key")
  },
)
