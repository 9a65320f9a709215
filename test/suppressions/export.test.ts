import { describe, expect, test } from "bun:test"
import { exported } from "../../src/suppressions/suppression-list"
import { suppressAll } from "../../src/suppressions/suppressions"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"

const service = await sharedService()
const { store } = service
const { signal } = new AbortController()

const HEAD =
  "id,channel,address,reason,origin,scope_type,scope_key,source_message_id,diagnostic,note,expires_at,created_at"

const fill = async ({ project_id }: TestProject, count: number, domain = "x.test") => {
  for (let from = 0; from < count; from += 1000) {
    const list = Array.from({ length: Math.min(1000, count - from) }, (_, at) => ({
      channel: "email" as const,
      address: `${from + at}@${domain}`,
      reason: "manual" as const,
      origin: "import" as const,
    }))
    await store.tx((tx) => suppressAll(tx, project_id, list))
  }
}

const csv = async (project: TestProject) => (await project.get("/v1/suppressions/export")).text

describe("the export", () => {
  test("is CSV with a line for each suppression, oldest first", async () => {
    const project = await service.project()
    const note = 'Said "no, thanks", by telephone.'
    const { data } = (await project.post("/v1/suppressions", { email: "a@x.test", note })).body
    await project.post("/v1/suppressions", { phone: "+4915112345678", reason: "unsubscribe" })
    const answer = await project.get("/v1/suppressions/export")
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8")
    expect(answer.headers.get("content-disposition")).toContain("attachment")
    const [head, first, second, end] = answer.text.split("\r\n")
    expect(head).toBe(HEAD)
    expect(first).toBe(
      `${data.id},email,a@x.test,manual,api,project,,,,"Said ""no, thanks"", by telephone.",,${data.created_at}`,
    )
    expect(second).toContain(",sms,+4915112345678,unsubscribe,api,project,,,,,,")
    expect(end).toBe("")
  })

  test("of an empty list has only its head", async () => {
    expect(await csv(await service.project())).toBe(`${HEAD}\r\n`)
  })

  test.each([
    ["=1+1@x.test", "'=1+1@x.test"],
    ["+1-2@x.test", "'+1-2@x.test"],
    ["-2+3@x.test", "'-2+3@x.test"],
    ["'=x@x.test", "''=x@x.test"],
    ['"a,b"@x.test', '"""a,b""@x.test"'],
  ])("has %s as %s, which no spreadsheet runs", async (email, cell) => {
    const project = await service.project()
    expect((await project.post("/v1/suppressions", { email })).status).toBe(201)
    expect(await csv(project)).toContain(`,email,${cell},manual,`)
  })

  test.each(["=cmd|' /C calc'!A0", "@SUM(A1)", "+1", "-1"])(
    "neutralizes the note %s",
    async (note) => {
      const project = await service.project()
      await project.post("/v1/suppressions", { email: "a@x.test", note })
      expect(await csv(project)).toContain(`,project,,,,'${note},`)
    },
  )

  test("has only the project's own", async () => {
    const [one, two] = [await service.project(), await service.project()]
    await fill(one, 3)
    expect((await csv(two)).split("\r\n")).toHaveLength(2)
  })

  test("needs its scope", async () => {
    const mail = await service.project({ scopes: ["email:read"] })
    expect((await mail.get("/v1/suppressions/export")).status).toBe(403)
  })

  test("has each row once that stays, and none that came later, while the list changes", async () => {
    const project = await service.project()
    const { project_id } = project
    await fill(project, 2200)
    const reader = exported(store.read, project_id, signal).body?.getReader()
    const decoder = new TextDecoder()
    let text = ""
    for (let pieces = 0; ; pieces++) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true }
      if (done) break
      text += decoder.decode(value, { stream: true })
      if (pieces !== 2) continue
      await fill(project, 300, "late.test")
      const emails = ["3@x.test", "700@x.test", "2100@x.test"]
      await project.post("/v1/suppressions/bulk-remove", { emails })
    }
    const addresses = text
      .trimEnd()
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(",")[2])
    expect(new Set(addresses).size).toBe(addresses.length)
    expect(addresses.filter((one) => one?.endsWith("late.test"))).toEqual([])
    const staying = Array.from({ length: 2200 }, (_, at) => `${at}@x.test`)
    const missing = staying.filter((one) => !addresses.includes(one))
    expect(missing.every((one) => ["3@x.test", "700@x.test", "2100@x.test"].includes(one))).toBe(
      true,
    )
  })

  test("is read in pieces, and no further than it is taken", async () => {
    const project = await service.project()
    await fill(project, sizes.exported)
    const reader = exported(store.read, project.project_id, signal).body?.getReader()
    let longest = 0
    let all = 0
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true }
      if (done) break
      longest = Math.max(longest, value?.length ?? 0)
      all += value?.length ?? 0
    }
    expect(all).toBeGreaterThan(500_000)
    expect(longest).toBeLessThan(150_000)
  })

  test("ends when the caller is gone", async () => {
    const project = await service.project()
    await fill(project, 2000)
    const stop = new AbortController()
    const reader = exported(store.read, project.project_id, stop.signal).body?.getReader()
    await reader?.read()
    stop.abort()
    let rest = 0
    while (!(await reader?.read())?.done) rest++
    expect(rest).toBeLessThan(4)
  })
})
