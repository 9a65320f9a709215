import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { list } from "../../src/subscribers/subscriber-list"
import { topicMembers, topics } from "../../src/topics/tables"
import { complaints, refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"

const service = await sharedService()
const PATH = "/v1/subscribers"

/** Adds subscribers in this order, each with its fields. */
async function addAll(
  project: TestProject,
  list: ({ external_id: string } & Record<string, unknown>)[],
) {
  for (const one of list) expect((await project.post(PATH, one)).status).toBe(201)
}

interface ListedName {
  external_id: string
}

/** The external ids of a list, and its total. */
async function listed(project: TestProject, query: string) {
  const { status, body } = await project.get(`${PATH}?${query}`)
  expect(status).toBe(200)
  return [body.data.map((one: ListedName) => one.external_id), body.meta.total]
}

/** All external ids of a list, page by page. */
async function walked(project: TestProject, query: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor: string | null = ""; cursor !== null; ) {
    const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await project.get(`${PATH}?per_page=3&${query}${after}`)
    found.push(...body.data.map((one: ListedName) => one.external_id))
    cursor = body.meta.next_cursor
  }
  return found
}

describe("the list", () => {
  test("is filtered by each of its filters, newest first", async () => {
    const project = await service.project()
    await addAll(project, [
      { external_id: "a", email: "Ann@Example.test", tags: ["x", "y"] },
      { external_id: "b", phone: "+4915112345678", tags: ["x"] },
      { external_id: "c", email: "ann@example.test" },
    ])
    await project.call("PATCH", `${PATH}/b`, { body: { status: "blocked" } })
    expect(await listed(project, "")).toEqual([["c", "b", "a"], 3])
    expect(await listed(project, "email=ANN@example.test")).toEqual([["c", "a"], 2])
    expect(await listed(project, "phone=%2B4915112345678")).toEqual([["b"], 1])
    expect(await listed(project, "external_id=b")).toEqual([["b"], 1])
    expect(await listed(project, "status=blocked")).toEqual([["b"], 1])
    expect(await listed(project, "status=active")).toEqual([["c", "a"], 2])
    expect(await listed(project, "status=unsubscribed")).toEqual([[], 0])
    expect(await listed(project, "tag=x")).toEqual([["b", "a"], 2])
    expect(await listed(project, "tag=X")).toEqual([[], 0])
    expect(await listed(project, "tag=x&status=active")).toEqual([["a"], 1])
    expect(await listed(project, "email=ann@example.test&tag=y")).toEqual([["a"], 1])
    expect(await listed(project, "search=ann&tag=y")).toEqual([["a"], 1])
    expect(await listed(project, "topic=none")).toEqual([[], 0])
  })

  test("has the members of a topic", async () => {
    const project = await service.project()
    await addAll(project, [
      { external_id: "a", tags: ["x"] },
      { external_id: "b" },
      { external_id: "c" },
    ])
    const { project_id } = project
    const [a, , c] = (await project.get(PATH)).body.data.toReversed()
    const [id, at] = [newId(), now()]
    const labels = { key: "news", name: "News", description: null, search_key: "news" }
    const counts = { subscriber_count: 2, last_number: 2 }
    await service.store.tx(async (tx) => {
      const kind = { default: "on" as const, visibility: "private" as const }
      const row = { id, project_id, ...labels, ...counts, ...kind, created_at: at, updated_at: at }
      await tx.insert(topics).values(row)
      for (const [number, { id: subscriber_id }] of [c, a].entries()) {
        const member = { topic_id: id, number, project_id, subscriber_id, created_at: at }
        await tx.insert(topicMembers).values(member)
      }
    })
    expect(await listed(project, "topic=news")).toEqual([["c", "a"], 2])
    expect(await listed(project, "topic=news&tag=x")).toEqual([["a"], 1])
    expect(await listed(project, "topic=news&search=c")).toEqual([["c"], 1])
    expect(await listed(await service.project(), "topic=news")).toEqual([[], 0])
  })

  test.each(["", "search=user", "search=u", "tag=x", "status=active", "search=user&tag=x"])(
    "has each subscriber once over its pages: %s",
    async (query) => {
      const project = await service.project()
      const names = Array.from({ length: 10 }, (_, at) => `user-${at}`)
      await addAll(
        project,
        names.map((external_id) => ({ external_id, tags: ["x"], name: "Even" })),
      )
      const all = names.toReversed()
      expect(await walked(project, query)).toEqual(all)
      const { data } = (await project.get(`${PATH}?${query}`)).body
      const at = (external_id: string) =>
        data.find((one: ListedName) => one.external_id === external_id).id
      expect((await listed(project, `${query}&per_page=4&page=2`))[0]).toEqual(all.slice(4, 8))
      expect((await listed(project, `${query}&limit=2&after=${at("user-5")}`))[0]).toEqual([
        "user-4",
        "user-3",
      ])
      expect((await listed(project, `${query}&limit=2&before=${at("user-5")}`))[0]).toEqual([
        "user-7",
        "user-6",
      ])
    },
  )

  test("begins at no record of a stranger, and at none by its external id", async () => {
    const [project, stranger] = [await service.project(), await service.project()]
    await addAll(project, [{ external_id: "a" }])
    const [{ id }] = (await project.get(PATH)).body.data
    expect(complaints(await stranger.get(`${PATH}?after=${id}`))).toEqual(["after"])
    expect(complaints(await project.get(`${PATH}?after=a`))).toEqual(["after"])
  })

  test.each([
    ["email", "nobody"],
    ["phone", "123"],
    ["status", "gone"],
    ["search", "---"],
    ["search", ""],
    ["search", "a b c d e f g h i"],
    ["search", "x".repeat(201)],
  ])("refuses %s=%s", async (name, value) => {
    const project = await service.project()
    const answer = await project.get(`${PATH}?${name}=${encodeURIComponent(value)}`)
    expect(answer.status).toBe(422)
    expect(complaints(answer)).toEqual([name])
  })
})

const PEOPLE = [
  { external_id: "cus_Müller-0042", email: "ann.miller84@mail.example.test", name: "Ann Miller" },
  { external_id: "B/7", email: "JOSÉ@example.test", name: "José  Ångström-O'Neil" },
  { external_id: "王小明", name: "王 小明" },
  { external_id: "p4", name: "ΟΔΥΣΣΕΥΣ Παπαδόπουλος" },
  { external_id: "p5", name: "Ｆｕｌｌｗｉｄｔｈ ﬁne" },
  { external_id: "p6", name: "نجيب محفوظ" },
  { external_id: "p7", name: "Straße 100%_x" },
]

describe("a search", () => {
  test.each([
    ["ann", ["cus_Müller-0042"]],
    ["ANN mil", ["cus_Müller-0042"]],
    ["mil ann", ["cus_Müller-0042"]],
    ["mül", ["cus_Müller-0042"]],
    ["mu\u0308ller", ["cus_Müller-0042"]],
    ["0042", ["cus_Müller-0042"]],
    ["cus_Müller-0042", ["cus_Müller-0042"]],
    ["miller84", ["cus_Müller-0042"]],
    ["ann.miller84@mail.example.test", ["cus_Müller-0042"]],
    ["ann neil", []],
    ["iller", []],
    ["042", []],
    ["example", ["B/7", "cus_Müller-0042"]],
    ["JOSÉ", ["B/7"]],
    ["josé", ["B/7"]],
    ["ång", ["B/7"]],
    ["o'n", ["B/7"]],
    ["b/7", ["B/7"]],
    ["王", ["王小明"]],
    ["小明", ["王小明"]],
    ["οδυσσευς", ["p4"]],
    ["ΟΔΥΣΣΕΥ", ["p4"]],
    ["παπαδοπουλος", []],
    ["παπαδόπουλος", ["p4"]],
    ["full", ["p5"]],
    ["fine", ["p5"]],
    ["محف", ["p6"]],
    ["straße", ["p7"]],
    ["100%", ["p7"]],
    ["%", undefined],
    ["_x", ["p7"]],
    ["p", ["p7", "p6", "p5", "p4"]],
    ["annn", []],
    ["anna\u{10ffff}", []],
  ])("for %s finds %j", async (search, found) => {
    const project = await people()
    const answer = await project.get(`${PATH}?search=${encodeURIComponent(search)}`)
    if (found === undefined) {
      expect(refusal(answer)).toEqual([422, "validation_error"])
      return
    }
    expect(answer.body.data.map((one: ListedName) => one.external_id)).toEqual(found)
    expect(answer.body.meta.total).toBe(found.length)
  })

  test("follows every change", async () => {
    const project = await service.project()
    await addAll(project, [{ external_id: "a", name: "Robert", email: "rob@example.test" }])
    await project.call("PATCH", `${PATH}/a`, { body: { name: "Bertram" } })
    expect((await listed(project, "search=robert"))[0]).toEqual([])
    expect((await listed(project, "search=rob"))[0]).toEqual(["a"])
    expect((await listed(project, "search=bertr"))[0]).toEqual(["a"])
    await project.call("PATCH", `${PATH}/a`, { body: { email: null } })
    expect((await listed(project, "search=r"))[0]).toEqual([])
    await project.call("DELETE", `${PATH}/a`)
    expect((await listed(project, "search=b"))[0]).toEqual([])
  })

  test("with more matches than are counted is walked page by page, newest first", async () => {
    const project = await service.project()
    const letter = (at: number) => String.fromCharCode(97 + (at % 26))
    // 2 words that begin with "common", and 676 that begin with "many".
    const rows = Array.from({ length: 1400 }, (_, at) => ({
      external_id: `x${at}`,
      name: `${at % 2 ? "common" : "commoner"} many${letter(at)}${letter(Math.floor(at / 26))}`,
      tags: at % 3 ? [] : ["third"],
    }))
    await makeSubscribers(service, project, rows)
    const all = rows.map(({ external_id }) => external_id).toReversed()
    for (const search of ["com", "comm", "many", "x", "many common", "comm many"]) {
      const query = `search=${encodeURIComponent(search)}&per_page=100`
      const first = (await project.get(`${PATH}?${query}`)).body
      const { total, total_pages, has_more } = first.meta
      expect([search, total, total_pages, has_more]).toEqual([search, null, null, true])
      const second = (await project.get(`${PATH}?${query}&page=2`)).body
      const third = (await project.get(`${PATH}?${query}&after=${second.data.at(-1).id}`)).body
      const before = (await project.get(`${PATH}?${query}&before=${third.data[0].id}`)).body
      const names = [first, second, third].flatMap(({ data }) => data as ListedName[])
      expect(names.map(({ external_id }) => external_id)).toEqual(all.slice(0, 300))
      expect(before.data).toEqual(second.data)
    }
    const odd = all.filter((name) => Number(name.slice(1)) % 2 === 0)
    expect((await listed(project, "search=commoner"))[0]).toEqual(odd.slice(0, 25))
    const third = all.filter((name) => Number(name.slice(1)) % 3 === 0)
    expect(await listed(project, "search=common&tag=third")).toEqual([third.slice(0, 25), null])
  })

  test("and other filters in any combination find what each of them finds alone", async () => {
    const project = await service.project()
    await project.post("/v1/topics", { name: "News" })
    const rows = Array.from({ length: 700 }, (_, at) => ({
      external_id: `y${at}`,
      name: at % 5 ? "walker" : `wanderer${String.fromCharCode(97 + (at % 13))}`,
      tags: [...(at % 10 ? ["often"] : []), ...(at % 97 ? [] : ["seldom"])],
      status: at % 50 < 2 ? ("blocked" as const) : ("active" as const),
    }))
    const ids = await makeSubscribers(service, project, rows)
    const members = ids.filter((_, at) => at % 30 === 0)
    await project.post("/v1/topics/news/subscribers", { subscriber_ids: members })
    const holds: Record<string, (at: number) => boolean> = {
      "search=walk": (at) => at % 5 !== 0,
      "search=wand": (at) => at % 5 === 0,
      "search=wa": () => true,
      "tag=often": (at) => at % 10 !== 0,
      "tag=seldom": (at) => at % 97 === 0,
      "status=blocked": (at) => at % 50 < 2,
      "status=active": (at) => at % 50 >= 2,
      "topic=news": (at) => at % 30 === 0,
    }
    const names = Object.keys(holds)
    const pairs = names.flatMap((one, at) => names.slice(at + 1).map((other) => [one, other]))
    const distinct = pairs.filter(([one, other]) => one?.split("=")[0] !== other?.split("=")[0])
    for (const query of [...distinct, ["search=wa", "tag=often", "status=blocked", "topic=news"]]) {
      const all = rows.flatMap(({ external_id }, at) =>
        query.every((name) => holds[name]?.(at)) ? [external_id] : [],
      )
      all.reverse()
      const found: string[] = []
      for (let after = ""; ; ) {
        const asked = `${PATH}?${query.join("&")}&limit=60${after}`
        const { data, meta } = (await project.get(asked)).body
        if (after === "") {
          expect([query, meta.total]).toEqual([query, all.length > 100 ? null : all.length])
        }
        found.push(...data.map((one: ListedName) => one.external_id))
        if (!meta.has_more) break
        after = `&after=${data.at(-1).id}`
      }
      expect([query, found]).toEqual([query, all])
    }
  })

  test("counts a subscriber once that has several words which begin alike", async () => {
    const project = await service.project()
    const rows = Array.from({ length: 990 }, (_, at) => ({
      external_id: `w${at}`,
      name: at < 700 ? "annabel annalena" : "annabel",
    }))
    await makeSubscribers(service, project, rows)
    const newest = rows.slice(-25).reverse()
    expect(await listed(project, "search=anna")).toEqual([
      newest.map(({ external_id }) => external_id),
      990,
    ])
  })

  test("of words that many have finds the newest with all of them, few or many", async () => {
    const project = await service.project()
    const rows = Array.from({ length: 6000 }, (_, at) => ({
      external_id: `z${at}`,
      name: [
        at % 2 ? "walker" : "walkman",
        at % 3 ? "rosalind" : "rosamund",
        at < 3000 ? "marina" : "",
        at >= 2995 ? "joelle" : "",
        at < 3200 && at % 900 === 0 ? "vinoly" : `vin${letters(at)}`,
      ].join(" "),
      tags: at % 2 ? ["odd"] : [],
      status: at % 5 < 2 ? ("blocked" as const) : ("active" as const),
    }))
    await makeSubscribers(service, project, rows)
    const expected: Record<string, (at: number) => boolean> = {
      "search=walke": (at) => at % 2 === 1,
      "search=walke+rosal": (at) => at % 2 === 1 && at % 3 !== 0,
      "search=marin+joell": (at) => at >= 2995 && at < 3000,
      "search=mar+joe": (at) => at >= 2995 && at < 3000,
      "search=vinoly": (at) => at < 3200 && at % 900 === 0,
      "search=vinoly+walk": (at) => at < 3200 && at % 900 === 0,
      "search=walk+marin&tag=odd": (at) => at % 2 === 1 && at < 3000,
      "search=walkm&tag=odd": () => false,
      "search=joell&status=blocked": (at) => at >= 2995 && at % 5 < 2,
      "status=blocked&tag=odd": (at) => at % 5 < 2 && at % 2 === 1,
    }
    for (const [query, holds] of Object.entries(expected)) {
      const all = rows.flatMap(({ external_id }, at) => (holds(at) ? [external_id] : [])).reverse()
      const { data, meta } = (await project.get(`${PATH}?${query}&limit=40`)).body
      const names = (list: ListedName[]) => list.map(({ external_id }) => external_id)
      expect([query, names(data)]).toEqual([query, all.slice(0, 40)])
      const most = /^search=[a-z]+$/.test(query) ? 1000 : 100
      expect([query, meta.total]).toEqual([query, all.length > most ? null : all.length])
      if (all.length <= 80) continue
      const second = (await project.get(`${PATH}?${query}&limit=40&page=2`)).body.data
      expect([query, names(second)]).toEqual([query, all.slice(40, 80)])
      const next = (await project.get(`${PATH}?${query}&limit=40&after=${second.at(-1).id}`)).body
        .data
      expect([query, names(next)]).toEqual([query, all.slice(80, 120)])
      const back = (await project.get(`${PATH}?${query}&limit=40&before=${next[0].id}`)).body.data
      expect(back).toEqual(second)
    }
  })

  test("lets other requests run while none of the first matches fits the other filters", async () => {
    const project = await service.project()
    const rows = Array.from({ length: 4400 }, (_, at) =>
      at < 2200 ? { name: "walker" } : { status: "blocked" as const },
    )
    await makeSubscribers(service, project, rows)
    let turns = 0
    setImmediate(() => {
      turns += 1
    })
    const filter = { words: ["wal"], status: "blocked" as const }
    const found = await list(service.store.read, project.project_id, filter)
    const window = { limit: 25, offset: 0, after: undefined, before: undefined }
    expect((await found.list(window)).rows).toEqual([])
    expect(turns).toBe(1)
  })

  test("of a project finds nothing of another one", async () => {
    await people()
    expect(await listed(await service.project(), "search=ann")).toEqual([[], 0])
  })
})

/** Three letters that name a number below 17,576. */
const letters = (at: number) =>
  [at, at / 26, at / 676].map((part) => String.fromCharCode(97 + (Math.floor(part) % 26))).join("")

let made: Promise<TestProject> | undefined

/** One project with all of them. */
const people = () =>
  (made ??= service.project().then(async (project) => {
    await addAll(project, PEOPLE)
    return project
  }))
