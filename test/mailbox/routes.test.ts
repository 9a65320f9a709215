import { beforeAll, describe, expect, test } from "bun:test"
import { feedback } from "../../src/messages/settle"
import { complaints, refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { putMail, sendAndPut } from "./received"

const service = await sharedService()
const file = { filename: "a.txt", content: "YWJj", content_type: "text/plain" }
const body = mail({ html: "<h1>Ding</h1>", to: "Ann@example.test", attachments: [file] })

const receive = (project: TestProject, fields = body) => sendAndPut(service, project, fields)

describe("the mailbox", () => {
  test("lists mail, and shows one with all its parts", async () => {
    const project = await service.project()
    const { id, email_id } = await receive(project)
    const list = await project.get("/v1/mailbox")
    expect(list.body.meta).toMatchObject({ total: 1, page: 1, has_more: false })
    expect(list.body.data).toEqual([
      {
        id,
        email_id,
        from: "bell@example.test",
        to: "ann@example.test",
        subject: "Ding",
        status: "delivered",
        read: false,
        size: expect.any(Number),
        attachments: null,
        created_at: expect.any(String),
      },
    ])
    const { data } = (await project.get(`/v1/mailbox/${id}`)).body
    expect(data).toMatchObject({
      id,
      email_id,
      from: "bell@example.test",
      to: "ann@example.test",
      subject: "Ding",
      text: expect.stringContaining("Dong"),
      attachments: [{ filename: "a.txt" }],
      status: "delivered",
      raw_url: `/v1/mailbox/${id}/raw`,
    })
    expect(data.html).toContain("<h1>Ding</h1>")
    expect((await project.get(data.raw_url)).status).toBe(200)
  })

  test("tells the status of each email as it is now, and none of another program's mail", async () => {
    const project = await service.project()
    const { email_id } = await receive(project)
    await putMail(service, project, { raw: "Subject: a\n\nb\n" })
    await putMail(service, project, { raw: "Subject: a\n\nb\n", email_id: NOBODY })
    const fact = { type: "complained", complaint_feedback_type: "abuse" } as const
    const address = "Ann@example.test"
    await service.store.tx((tx) => feedback(tx, email_id, { ...fact, address }))
    const { data } = (await project.get("/v1/mailbox")).body
    expect(data.map(({ status }: { status: string }) => status)).toEqual([null, null, "complained"])
  })

  test("is the project's own", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const { id } = await receive(one)
    expect((await two.get("/v1/mailbox")).body.data).toEqual([])
    for (const other of [id, NOBODY, "x", "%F0%9F%98%80"]) {
      expect(refusal(await two.get(`/v1/mailbox/${other}`))).toEqual([404, "not_found"])
    }
    await two.call("DELETE", "/v1/mailbox")
    expect((await one.get("/v1/mailbox")).body.meta.total).toBe(1)
  })

  test("is cleared in part or as a whole", async () => {
    const project = await service.project()
    await receive(project)
    await receive(project, mail({ to: "bob@example.test" }))
    await receive(project, mail({ to: "bob@example.test", cc: "ann@example.test" }))
    const clear = async (query: string) =>
      (await project.call("DELETE", `/v1/mailbox${query}`)).body.data
    expect(await clear("?to=nobody@example.test")).toEqual({ deleted: 0 })
    expect(await clear("?to=ANN@example.test")).toEqual({ deleted: 2 })
    expect(await clear("")).toEqual({ deleted: 1 })
    expect((await project.get("/v1/mailbox")).body.meta.total).toBe(0)
  })

  test("needs the scope for sending to be cleared", async () => {
    const project = await service.project({ scopes: ["email:read"] })
    expect(refusal(await project.call("DELETE", "/v1/mailbox"))).toEqual([403, "forbidden"])
    expect((await project.get("/v1/mailbox")).status).toBe(200)
  })
})

describe("filters", () => {
  let project: TestProject
  beforeAll(async () => {
    project = await service.project()
    for (const name of ["one", "two", "three"]) {
      await receive(project, mail({ to: `${name}@example.test`, subject: `For ${name}` }))
    }
  })

  test.each<[string, number]>([
    ["", 3],
    ["to=two@example.test", 1],
    ["to=Two%20<TWO@example.test>", 1],
    ["search=F%C3%96R", 0],
    ["from=bell@example.test", 3],
    ["search=FOR%20t", 2],
    ["search=%25", 0],
    ["since=2000-01-01T00:00:00Z", 3],
    ["since=2100-01-01T00:00:00Z", 0],
    ["to=one@example.test&search=two", 0],
  ])("%j finds %d", async (query, count) => {
    const { status, body: found } = await project.get(`/v1/mailbox?${query}`)
    expect([status, found.data?.length, found.meta.total]).toEqual([200, count, count])
  })

  test("page by page and by cursor", async () => {
    const first = (await project.get("/v1/mailbox?per_page=2")).body
    expect(first.meta).toMatchObject({ total: 3, total_pages: 2, has_more: true })
    const rest = (await project.get(`/v1/mailbox?per_page=2&cursor=${first.meta.next_cursor}`)).body
    const subjects = [...first.data, ...rest.data].map((one: { subject: string }) => one.subject)
    expect(subjects).toEqual(["For three", "For two", "For one"])
  })

  test.each([
    "to=two",
    "from=two",
    "since=yesterday",
    "since=",
    "per_page=101",
    `search=${"x".repeat(201)}`,
  ])("%.30s is refused", async (query) => {
    const refused = await project.get(`/v1/mailbox?${query}`)
    expect([refused.status, complaints(refused)]).toEqual([422, [query.split("=")[0] ?? ""]])
  })
})
