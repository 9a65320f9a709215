import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { program } from "../harness/program"
import { environment, freshHome, onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY, HOME: freshHome() })

const BULK = "POST /v1/suppressions/bulk"
const PATH = "/v1/suppressions/bulk"

const found = (more: object = {}) => ({
  ...{ id: ID, channel: "email", address: "ann@acme.test", reason: "bounce", origin: "event" },
  ...{ scope: { type: "project", key: null }, source_message_id: ID, diagnostic: null, note: null },
  ...{ expires_at: null, created_at: new Date().toISOString() },
  ...more,
})

interface BulkItem {
  email?: string
  phone?: string
  expires_at?: string
  reason?: string
  note?: string
}

const given = (body: unknown) => (body as { emails: BulkItem[] }).emails

/** Answers as the server does, where an address with "bad" cannot be read. */
function bulk(api: FakeApi) {
  api.answer(BULK, ({ body }) => {
    const emails = given(body)
    const failed = emails.flatMap(({ email }, index) => {
      const message = `emails.${index}.email: This is no address.`
      const error = { code: "invalid_email", message, details: {} }
      return email?.includes("bad") ? [{ index, error }] : []
    })
    return {
      body: { data: { added: emails.length - failed.length, existing: 0, failed }, meta: {} },
    }
  })
}

/** A file with this content in a folder of its own. */
function file(name: string, content: string): string {
  const path = join(freshHome(), name)
  writeFileSync(path, content)
  return path
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => `${n}@x.test`).join("\n")

const isJson = (text: string) => text.startsWith("{") && !text.trimEnd().includes("\n")

const run = async (api: FakeApi, ...words: string[]) => {
  const { exit, out, err } = await belfry(["suppressions", ...words], { env: at(api) })
  return { exit, err, out, data: isJson(out) ? JSON.parse(out) : undefined }
}

describe("an import", () => {
  test("sends the lines of a file in chunks of a thousand", async () => {
    using api = new FakeApi()
    bulk(api)
    const path = file("a.txt", numbered(2500))
    const { exit, data } = await run(
      api,
      "import",
      path,
      "--reason",
      "unsubscribe",
      "--note",
      "old",
    )
    expect([exit, data]).toMatchObject([0, { added: 2500, failed: 0, errors: null }])
    const sent = api.seen.map(({ body }) => given(body))
    expect(sent.map(({ length }) => length)).toEqual([1000, 1000, 500])
    expect(sent[0]?.[7]).toEqual({ email: "7@x.test", reason: "unsubscribe", note: "old" })
    expect(new Set(api.seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(3)
    expect(existsSync(`${path}.progress`)).toBe(false)
    expect(existsSync(`${path}.errors.csv`)).toBe(false)
  })

  test("reads a pipe once, as it reads stdin", async () => {
    using api = new FakeApi()
    bulk(api)
    const cwd = freshHome()
    const lines = "printf 'a@x.test\\nb@bad.test\\n'"
    const import_it = `"$@" suppressions import <(${lines})`
    const words = ["bash", "-c", import_it, "belfry", ...program]
    const child = Bun.spawn(words, { cwd, env: environment(at(api)), stderr: "pipe" })
    const text = await new Response(child.stdout).text()
    expect([await child.exited, JSON.parse(text)]).toMatchObject([8, { added: 1, failed: 1 }])
    expect(readFileSync(join(cwd, "suppressions.errors.csv"), "utf8")).toContain("2,b@bad.test,")
  })

  test("reads CSV with a head, whatever the order of its columns", async () => {
    using api = new FakeApi()
    bulk(api)
    const path = file(
      "a.csv",
      '\ufeffName;Reason;E-Mail\nAnn;bounce;ann@x.test\n"B;n";;ben@x.test\n',
    )
    expect((await run(api, "import", path)).exit).toBe(0)
    expect(given(api.seen[0]?.body)).toEqual([
      { email: "ann@x.test", reason: "bounce" },
      { email: "ben@x.test" },
    ])
  })

  test.each([
    ["email,address\nold@x.test,ann@x.test\nben@x.test,\n", ["ann@x.test", "ben@x.test"]],
    ["recipient,E-Mail\nold@x.test,ann@x.test\nben@x.test,\n", ["ann@x.test", "ben@x.test"]],
    ["Reason,recipient,email,reason\n,ann@x.test,,\n", ["ann@x.test"]],
  ])(
    "reads the address of a line from the first column of an address that has one: %j",
    async (text, emails) => {
      using api = new FakeApi()
      bulk(api)
      const { exit, data } = await run(api, "import", file("a.csv", text))
      expect([exit, data]).toMatchObject([0, { added: emails.length, failed: 0 }])
      expect(given(api.seen[0]?.body)).toEqual(emails.map((email) => ({ email })))
    },
  )

  test("takes back what an export wrote", async () => {
    using api = new FakeApi()
    bulk(api)
    const head =
      "id,channel,address,reason,origin,scope_type,scope_key,source_message_id,note,expires_at,created_at"
    const lines = [
      `${ID},email,'=a@x.test,bounce,event,project,,${ID},,,2026-11-21T10:30:00.000Z`,
      `${ID},sms,+4915112345678,unsubscribe,api,project,,,,,2026-11-21T10:30:00.000Z`,
      `${ID},email,b@x.test,manual,api,project,,,"a, b",2030-01-01T00:00:00.000Z,2026-11-21T10:30:00.000Z`,
      `${ID},email,c@x.test,unsubscribe,page,category,news,,,,2026-11-21T10:30:00.000Z`,
    ]
    const path = file("a.csv", [head, ...lines].join("\r\n"))
    const { exit, data } = await run(api, "import", path)
    expect([exit, data]).toMatchObject([8, { added: 3, failed: 1 }])
    expect(api.seen.flatMap(({ body }) => given(body))).toEqual([
      { email: "=a@x.test", reason: "bounce" },
      { phone: "+4915112345678", reason: "unsubscribe" },
      { email: "b@x.test", reason: "manual", note: "a, b", expires_at: "2030-01-01T00:00:00.000Z" },
    ])
    expect(readFileSync(`${path}.errors.csv`, "utf8")).toContain("5,c@x.test,not_imported,")
  })

  test("writes the refused lines into a file, and ends with 8", async () => {
    using api = new FakeApi()
    bulk(api)
    const path = file("a.txt", `${numbered(1100)}\nbad one\n\n=bad\nlast@x.test\n`)
    const errors = `${path}.refused`
    const { exit, data } = await run(api, "import", path, "--errors", errors)
    expect([exit, data]).toMatchObject([8, { added: 1101, failed: 2, errors }])
    expect(readFileSync(errors, "utf8").split("\r\n")).toEqual([
      "line,address,code,message",
      "1101,bad one,invalid_email,This is no address.",
      "1103,'=bad,invalid_email,This is no address.",
      "",
    ])
  })

  test("waits where the server asks it to, and sends the same again", async () => {
    using api = new FakeApi()
    let asked = 0
    const limit = { code: "rate_limit_exceeded", message: "Wait.", details: { retry_after: 0 } }
    const busy = { code: "service_unavailable", message: "Busy.", details: { retry_after: 0 } }
    api.answer(BULK, ({ body }) => {
      asked += 1
      if (asked <= 8) return { status: 429, body: { error: limit, meta: {} } }
      if (asked === 9) return { status: 503, body: { error: busy, meta: {} } }
      const { length: added } = given(body)
      return { body: { data: { added, existing: 0, failed: [] }, meta: {} } }
    })
    const { exit, data } = await run(api, "import", file("a.txt", numbered(10)))
    expect([exit, data.added, asked]).toEqual([0, 10, 10])
    expect(new Set(api.seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(1)
  })

  test("goes on where it was interrupted, and begins anew for another file", async () => {
    using api = new FakeApi()
    let is_down = false
    api.answer(BULK, ({ body }) => {
      const emails = given(body)
      if (emails[0]?.email === "2000@x.test" && is_down) {
        return { status: 400, body: { error: { code: "invalid_json", message: "No." }, meta: {} } }
      }
      return { body: { data: { added: emails.length, existing: 0, failed: [] }, meta: {} } }
    })
    const path = file("a.txt", numbered(3000))
    is_down = true
    expect((await run(api, "import", path)).exit).not.toBe(0)
    expect(JSON.parse(readFileSync(`${path}.progress`, "utf8"))).toMatchObject({ lines: 2000 })
    is_down = false
    api.seen.length = 0
    const { exit, data } = await run(api, "import", path)
    expect([exit, data]).toMatchObject([0, { added: 3000 }])
    expect(api.seen.map(({ body }) => given(body)[0]?.email)).toEqual(["2000@x.test"])

    is_down = true
    await run(api, "import", path)
    is_down = false
    for (const change of [["--restart"], ["--reason", "bounce"]]) {
      api.seen.length = 0
      expect((await run(api, "import", path, ...change)).data.added).toBe(3000)
      expect(api.seen).toHaveLength(3)
    }
  })

  test("shows its progress on a terminal", async () => {
    using api = new FakeApi()
    bulk(api)
    const path = file("a.txt", `${numbered(1500)}\nbad`)
    const { exit, out } = await onTerminal(["suppressions", "import", path], { env: at(api) })
    expect(exit).toBe(8)
    expect(out).toContain("1000 of 1501 lines")
    expect(out).toContain("1500 added, 0 suppressed before")
    expect(out).toContain("1 refused: see")
  })

  test("of a file that is not there ends with 66, and asks nothing", async () => {
    using api = new FakeApi()
    expect((await run(api, "import", "/nowhere/a.csv")).exit).toBe(66)
    expect(api.seen.filter(({ path }) => path === PATH)).toEqual([])
  })
})

describe("an export", () => {
  const head =
    "id,channel,address,reason,origin,scope_type,scope_key,source_message_id,note,expires_at,created_at"
  const csv = [
    head,
    `${ID},email,'=a@x.test,bounce,event,project,,${ID},"a, ""b""",,2026-11-21T10:30:00.000Z`,
    `${ID},email,b@x.test,unsubscribe,page,category,news,,,,2026-11-21T10:30:00.000Z`,
    "",
  ].join("\r\n")

  test("is the CSV as it comes", async () => {
    using api = new FakeApi()
    api.answer("GET /v1/suppressions/export", { body: csv })
    expect(await run(api, "export")).toMatchObject({ exit: 0, out: csv })
  })

  test("with --ndjson has the records of the API", async () => {
    using api = new FakeApi()
    api.answer("GET /v1/suppressions/export", { body: csv })
    const { exit, out } = await run(api, "export", "--ndjson")
    const records = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const at = { expires_at: null, created_at: "2026-11-21T10:30:00.000Z" }
    expect([exit, records]).toEqual([
      0,
      [
        {
          ...{ id: ID, channel: "email", address: "=a@x.test", reason: "bounce", origin: "event" },
          scope: { type: "project", key: null },
          ...{ source_message_id: ID, note: 'a, "b"', ...at },
        },
        {
          ...{
            id: ID,
            channel: "email",
            address: "b@x.test",
            reason: "unsubscribe",
            origin: "page",
          },
          scope: { type: "category", key: "news" },
          ...{ source_message_id: null, note: null, ...at },
        },
      ],
    ])
  })

  test("that is refused says so", async () => {
    using api = new FakeApi()
    api.error("GET /v1/suppressions/export", 403, "forbidden")
    expect((await run(api, "export")).exit).toBe(4)
  })
})

test("check tells whether an address gets mail, also by its exit code", async () => {
  using api = new FakeApi()
  const route = "GET /v1/suppressions/check"
  api.data(route, { address: "ann@acme.test", suppressed: true, suppression: found() })
  expect((await run(api, "check", "ann@acme.test", "--category", "news")).exit).toBe(1)
  expect(api.seen[0]?.query).toEqual({ email: "ann@acme.test", category: "news" })
  api.data(route, { address: "+4915112345678", suppressed: false, suppression: null })
  expect((await run(api, "check", "+4915112345678")).exit).toBe(0)
  expect(api.seen[1]?.query).toEqual({ phone: "+4915112345678" })
})

test("add, get and rm take an address", async () => {
  using api = new FakeApi()
  api.data("POST /v1/suppressions", found())
  await run(api, "add", "ann@acme.test", "--note", "n", "--expires", "2030-01-01T00:00:00Z")
  const expires_at = "2030-01-01T00:00:00.000Z"
  expect(api.seen.at(-1)?.body).toEqual({ email: "ann@acme.test", note: "n", expires_at })

  const scoped = found({
    id: "0199a1c2-0000-7000-8000-000000000009",
    scope: { type: "category", key: "news" },
  })
  api.data("GET /v1/suppressions", [scoped, found()])
  api.data(`GET /v1/suppressions/${ID}`, found())
  expect((await run(api, "get", "ann@acme.test")).data).toMatchObject({ id: ID })

  api.data("POST /v1/suppressions/bulk-remove", { removed: 1, not_found: ["ben@acme.test"] })
  api.data(`DELETE /v1/suppressions/${ID}`, { id: ID, deleted: true })
  const { exit, data } = await run(api, "rm", "ann@acme.test", "ben@acme.test", ID, "--yes")
  expect([exit, data]).toEqual([3, { removed: 2, not_found: ["ben@acme.test"] }])
})

test("the list shows what is suppressed, for what and until when", async () => {
  using api = new FakeApi()
  const ends = new Date(Date.now() + 30 * 86_400_000 + 3_600_000).toISOString()
  const news = { address: "ben@acme.test", scope: { type: "category", key: "news" } }
  api.data("GET /v1/suppressions", [found({ expires_at: ends }), found(news)])
  const { out } = await onTerminal(["suppressions", "list", "--no-color"], {
    env: { ...at(api), COLUMNS: "140" },
  })
  expect(out).toMatch(/ID +ADDRESS +REASON +ORIGIN +FOR +ENDS/)
  expect(out).toMatch(/ann@acme\.test +bounce +event +everything +in 30 d/)
  expect(out).toMatch(/ben@acme\.test +bounce +event +category news +never/)
})

describe("lift", () => {
  const MORE = "0199a1c2-0000-7000-8000-000000000002"
  const said = { diagnostic: "550 5.2.0 no OFR_506" }

  /** Two suppressions. The filter stops once before the second, and the first is gone when it is removed. */
  const twoPages = (api: FakeApi) => {
    api.answer("GET /v1/suppressions", ({ query: { cursor } }) => {
      const data =
        { 2: [found(said)], 3: [found({ ...said, id: MORE })] }[Number(cursor ?? 2)] ?? []
      const next_cursor = { 2: "7", 7: "3" }[Number(cursor ?? 2)] ?? null
      const meta = { next_cursor, has_more: next_cursor !== null, incomplete: true }
      return { body: { data, meta: next_cursor === null ? { next_cursor } : meta } }
    })
    api.error(`DELETE /v1/suppressions/${ID}`, 404, "not_found")
    api.data(`DELETE /v1/suppressions/${MORE}`, { id: MORE, deleted: true })
  }

  test("removes each suppression that the reply caused, and no other of its address", async () => {
    using api = new FakeApi()
    twoPages(api)
    const { exit, data } = await run(
      ...([
        api,
        "lift",
        "--diagnostic",
        "ofr",
        "--since",
        "2026-11-01T00:00:00Z",
        "--yes",
      ] as const),
    )
    expect([exit, data]).toMatchObject([0, { found: 2, lifted: 1 }])
    expect(api.seen[0]?.query).toMatchObject({
      ...{ reason: "bounce", origin: "event", diagnostic: "ofr" },
      created_after: "2026-11-01T00:00:00.000Z",
    })
    expect(api.seen.filter(({ method }) => method === "DELETE")).toHaveLength(2)
  })

  test("with --dry-run only shows how many there are, and some of them", async () => {
    using api = new FakeApi()
    twoPages(api)
    const { exit, data } = await run(api, "lift", "--diagnostic", "ofr", "--dry-run")
    const samples = Array(2).fill({ address: "ann@acme.test", said: said.diagnostic })
    expect([exit, data]).toEqual([0, { found: 2, lifted: 0, samples }])
    expect(api.seen.map(({ method }) => method)).toEqual(["GET", "GET", "GET"])
  })

  test("changes nothing where nobody confirms it", async () => {
    using api = new FakeApi()
    twoPages(api)
    const { exit, err } = await run(api, "lift", "--diagnostic", "ofr")
    expect([exit, err]).toEqual([2, expect.stringContaining("This removes 2 suppressions")])
    expect(api.seen.map(({ method }) => method)).not.toContain("DELETE")
  })
})
