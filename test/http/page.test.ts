import { beforeAll, describe, expect, test } from "bun:test"
import { Problems } from "../../src/core/errors"
import { Cursors, datesOf, listPage, readTime } from "../../src/http/page"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const project = await service.project()
const TOTAL = 60

/** Newest first, as lists answer. */
const ids: string[] = []

beforeAll(async () => {
  const many = Array.from({ length: TOTAL }, (_, at) => mail({ subject: `number ${at}` }))
  const { body } = await project.post("/v1/emails/batch", { messages: many })
  ids.push(...body.data.results.map(({ id }: { id: string }) => id).reverse())
})

const list = (query: string) => project.get(`/v1/emails${query}`)
const idsOf = ({ body }: Awaited<ReturnType<typeof list>>): string[] =>
  body.data.map(({ id }: { id: string }) => id)

describe("a page", () => {
  test("is the first 25, and tells what there is", async () => {
    const page = await list("")
    expect(idsOf(page)).toEqual(ids.slice(0, 25))
    expect(page.body.meta).toEqual({
      request_id: expect.any(String),
      page: 1,
      per_page: 25,
      total: TOTAL,
      total_pages: 3,
      has_more: true,
      next_cursor: expect.any(String),
    })
    expect(page.headers.get("link")).toBe('</v1/emails?page=2>; rel="next"')
  })

  test("at the end has no more, beyond it nothing", async () => {
    const last = await list("?page=3")
    expect(idsOf(last)).toEqual(ids.slice(50))
    expect(last.body.meta).toMatchObject({ page: 3, has_more: false, next_cursor: null })
    expect(last.headers.has("link")).toBe(false)
    const beyond = await list("?page=4")
    expect(beyond.body).toMatchObject({ data: [], meta: { page: 4, total: 60, has_more: false } })
  })

  test("is exact where it ends with the list", async () => {
    expect((await list("?per_page=60")).body.meta).toMatchObject({
      has_more: false,
      total_pages: 1,
    })
    expect((await list("?per_page=59")).body.meta).toMatchObject({ has_more: true, total_pages: 2 })
    expect(idsOf(await list("?per_page=1&page=60"))).toEqual(ids.slice(59))
  })

  test("keeps filters in its link", async () => {
    const { headers } = await list("?per_page=2&subject=number%201&page=2")
    expect(headers.get("link")).toBe('</v1/emails?per_page=2&subject=number+1&page=3>; rel="next"')
  })

  test.each(["page=0", "page=-1", "page=1.5", "page=x", "page=", "per_page=0", "per_page=101"])(
    "is refused: %s",
    async (query) => {
      const refused = await list(`?${query}`)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(complaints(refused)).toEqual([query.split("=")[0] ?? ""])
    },
  )

  test("deep down wants a cursor", async () => {
    expect((await list("?page=100&per_page=100")).status).toBe(200)
    for (const query of ["?page=101&per_page=100", "?page=401", "?page=9007199254740993"]) {
      const refused = await list(query)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(refused.body.error.details.reason).toBe("use_cursor")
    }
  })
})

describe("a cursor", () => {
  test("walks the whole list once, whatever comes meanwhile", async () => {
    const seen: string[] = []
    let query = "?per_page=7"
    for (let turn = 0; ; turn++) {
      const page = await list(query)
      seen.push(...idsOf(page))
      const { next_cursor, has_more } = page.body.meta
      expect(has_more).toBe(next_cursor !== null)
      expect(page.headers.has("link")).toBe(has_more)
      if (turn > 0) {
        expect(page.body.meta).toMatchObject({ page: null, total: null, total_pages: null })
      }
      if (!next_cursor) break
      query = `?per_page=7&cursor=${next_cursor}`
    }
    expect(seen).toEqual(ids)
  })

  test("is what the link of its page uses", async () => {
    const first = await list("?per_page=2")
    const second = await list(`?per_page=2&cursor=${first.body.meta.next_cursor}`)
    const [, next = ""] =
      /^<\/v1\/emails(.*)>; rel="next"$/.exec(second.headers.get("link") ?? "") ?? []
    expect(idsOf(await list(next))).toEqual(ids.slice(4, 6))
  })

  test("that was made up or changed is refused", async () => {
    const { next_cursor } = (await list("?per_page=2")).body.meta
    const [data = "", mac = ""] = next_cursor.split(".")
    const forged = Buffer.from("' OR 1=1 --").toString("base64url")
    for (const cursor of ["", "x", ".", data, `${data}.`, `.${mac}`, `${forged}.${mac}`]) {
      const refused = await list(`?cursor=${encodeURIComponent(cursor)}`)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(complaints(refused)).toEqual(["cursor"])
    }
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: next_cursor.length - 1 }),
        fc.constantFrom(..."AZaz09-_.!= é\0"),
        async (at, char) => {
          fc.pre(next_cursor[at] !== char)
          const changed = next_cursor.slice(0, at) + char + next_cursor.slice(at + 1)
          const { status } = await list(`?cursor=${encodeURIComponent(changed)}`)
          expect(status).toBe(422)
        },
      ),
      { seed: 2, numRuns: 100 },
    )
    expect((await list(`?cursor=${next_cursor}.more`)).status).toBe(422)
    expect((await list(`?cursor=${next_cursor}`)).status).toBe(200)
  })

  test("holds for its own list and project only", async () => {
    const other = await service.project()
    await other.addKey()
    await project.addKey()
    const emails = (await list("?per_page=2")).body.meta.next_cursor
    const keys = (await project.get("/v1/api-keys?per_page=1")).body.meta.next_cursor
    const foreign = (await other.get("/v1/api-keys?per_page=1")).body.meta.next_cursor
    const own = await project.get(`/v1/api-keys?per_page=1&cursor=${keys}`)
    expect(own.status).toBe(200)
    for (const [path, cursor] of [
      ["/v1/emails", keys],
      ["/v1/api-keys", emails],
      ["/v1/api-keys", foreign],
      [`/v1/emails/${ids[0]}/attempts`, emails],
    ]) {
      const refused = await project.get(`${path}?cursor=${cursor}`)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(complaints(refused)).toEqual(["cursor"])
    }
  })
})

test("the deepest page by number links to the one behind it by cursor", async () => {
  const cursors = new Cursors(service.parts.secrets)
  const rows = Array.from({ length: 101 }, (_, at) => ({ id: String(at) }))
  const link = async (page: number) => {
    const request = new Request(`http://localhost/v1/emails?page=${page}&per_page=100&tag=a`)
    const all = { list: async () => ({ rows }), total: async () => 20_000 }
    const caller = { project_id: "p", account_id: "a", user_id: null }
    const answer = await listPage({ request, query: { page, per_page: 100 }, caller }, cursors, all)
    return answer.headers?.link
  }
  expect(await link(99)).toBe('</v1/emails?page=100&per_page=100&tag=a>; rel="next"')
  const cursor = cursors.write("p\n/v1/emails", "99")
  expect(await link(100)).toBe(`</v1/emails?per_page=100&tag=a&cursor=${cursor}>; rel="next"`)
})

describe("dates", () => {
  test.each([
    ["2026-11-21T10:30:00Z", "2026-11-21T10:30:00.000Z"],
    ["2026-11-21T10:30:00.5+02:00", "2026-11-21T08:30:00.500Z"],
    ["2026-11-21T10:30-11:30", "2026-11-21T22:00:00.000Z"],
    ["2026-11-21T10:30:00+0100", "2026-11-21T09:30:00.000Z"],
    ["2026-11-21T10:30:00.123456-0530", "2026-11-21T16:00:00.123Z"],
    ["2026-11-21T10:30:00+01", "2026-11-21T09:30:00.000Z"],
    ["2026-11-21 10:30:00+00:00", "2026-11-21T10:30:00.000Z"],
    ["2026-11-21t10:30:00z", "2026-11-21T10:30:00.000Z"],
  ])("%s is a time", (text, expected) => {
    expect(readTime("t", text, new Problems())).toBe(expected)
  })

  test.each([
    "2026-11-21",
    "9999-12-31T23:59:59-01:00",
    "2026-11-21T10:30:00",
    "2026-13-21T10:30:00Z",
    "2026-02-30T10:30:00Z",
    "2026-11-21T25:00:00Z",
    "2026-11-21T10:30:00+1",
    "2026-11-21T10:30:00+25",
    "2026-11-21T10:30:00+01000",
    "2026-11-21T10:30:00+0160",
    "2026-11-21T10:30:00 +0100",
    "21 Nov 2026 10:30 GMT",
    "1700000000000",
    "",
    "now",
  ])("%j is none", (text) => {
    const problems = new Problems()
    expect(readTime("t", text, problems)).toBeUndefined()
    expect(problems.list).toMatchObject([{ path: "t", code: "invalid" }])
  })

  test("have aliases, and every bad one is told", () => {
    const [one, two] = ["2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"]
    expect(datesOf({ start_date: one, end_date: two })).toEqual({ after: one, before: two })
    expect(datesOf({ created_after: two, start_date: one })).toMatchObject({ after: two })
    expect(() => datesOf({ created_after: "x", end_date: "y" })).toThrow(/created_after.*end_date/)
  })
})
