import { describe, expect, test } from "bun:test"
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { LONGEST_RECORD } from "../../cli/lib/csv"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { FakeApi } from "./fake-api"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

const isJson = (text: string) => text.startsWith("{") && !text.trimEnd().includes("\n")

async function run(env: Record<string, string>, ...words: string[]) {
  const { exit, out, err } = await belfry(["subscribers", ...words], { env })
  return { exit, err, out, data: isJson(out) ? JSON.parse(out) : undefined }
}

const as = ({ key }: TestProject) => ({ BELFRY_URL: url, BELFRY_API_KEY: key })

/** A file with this content in a folder of its own. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(freshHome(), name)
  writeFileSync(path, content)
  return path
}

const get = async (project: TestProject, id: string) =>
  (await project.get(`/v1/subscribers/external/${encodeURIComponent(id)}`)).body.data

const total = async (project: TestProject, query = "") =>
  (await project.get(`/v1/subscribers?${query}`)).body.meta.total

const NAMES = [
  ...["Ann", "Jürgen Groß", "José Núñez", "François", "Zoë", "Søren Ødegård", "Þórdís", "Łukasz"],
  ...[
    "Çağlar İnan",
    "Ștefan",
    "Ελένη",
    "Дмитрий",
    "დავით",
    "Արամ",
    "محمد",
    "דוד",
    "प्रिया",
    "ก้องภพ",
  ],
  ...["王小明", "さくら", "김민준", "Nguyễn Văn", "😀 Smile"],
]

describe("an import", () => {
  test("takes a CSV file of spreadsheets: BOM, semicolons, quotes and 20 languages", async () => {
    const project = await service.project()
    const rows = NAMES.map(
      (name, at) => `${at};"${name};""x""";a${at}@example.test;"x|y, z";pro;\r\n`,
    )
    const head = "User-ID;Full Name;E-Mail;Tags;Plan;Unknown\r\n"
    const path = file("people.csv", `\ufeff${head}${rows.join("")}`)
    const answer = await run(as(project), "import", path, "--map", "Plan=metadata.plan")
    const counts = { created: NAMES.length, updated: 0, skipped: 0, failed: 0, errors: null }
    expect([answer.exit, answer.data]).toMatchObject([0, { ...counts, encoding: "utf-8" }])
    for (const [at, name] of NAMES.entries()) {
      expect(await get(project, `${at}`)).toMatchObject({
        name: `${name};"x"`,
        email: `a${at}@example.test`,
        tags: ["x", "y", "z"],
        metadata: { plan: "pro" },
      })
    }
    expect(await total(project, `search=${encodeURIComponent("ΕΛΈΝΗ")}`)).toBe(1)
    const before = await get(project, "3")
    const again = await run(as(project), "import", path, "--map", "Plan=metadata.plan")
    expect(again.data).toMatchObject({ created: 0, updated: NAMES.length })
    expect(await get(project, "3")).toEqual(before)
  })

  test("takes JSON lines, and names the lines that are broken", async () => {
    const project = await service.project()
    const lines = [
      '{"external_id":"a","metadata":{"n":1},"tags":["x"]}',
      "",
      "{broken",
      '{"external_id":"b","email":"nobody"}',
      '{"external_id":"bulk"}',
      "[]",
      '{"external_id":"c"}',
      '{"external_id":"d","metadata":{"n":9007199254740993}}',
      '{"external_id":"e","metadata":{"n":[1e999]}}',
      '{"external_id":"f","metadata":{"n":-9007199254740992,"m":"9007199254740993","x":1e3}}',
    ]
    const path = file("people.ndjson", lines.join("\n"))
    const { exit, data } = await run(as(project), "import", path)
    const errors = `${path}.errors.csv`
    expect([exit, data]).toMatchObject([8, { created: 3, updated: 0, failed: 6, errors }])
    expect(data.no_address).toBe(3)
    const refused = readFileSync(errors, "utf8").trimEnd().split("\r\n")
    expect(refused.map((line) => line.split(",").slice(0, 3))).toEqual([
      ["line", "external_id", "code"],
      ["3", "{broken", "not_imported"],
      ["4", "b", "invalid_email"],
      ["5", "bulk", "validation_error"],
      ["6", "[]", "not_imported"],
      ["8", '"{""external_id"":""d""', '""metadata"":{""n"":9007199254740993}}"'],
      ["9", '"{""external_id"":""e""', '""metadata"":{""n"":[1e999]}}"'],
    ])
    expect(refused[5]).toContain(",not_imported,JSON cannot carry a number of the line exactly.")
    expect(await get(project, "a")).toMatchObject({ metadata: { n: 1 }, tags: ["x"] })
    const { metadata } = await get(project, "f")
    expect(metadata).toEqual({ n: -(2 ** 53), m: "9007199254740993", x: 1000 })
    expect(existsSync(`${path}.progress`)).toBe(false)
  })

  test("as a dry run promises nothing of the values, which only the server checks", async () => {
    const project = await service.project()
    const path = file("a.csv", "id,email\na,no address\nb,\nbatch,c@x.test\n")
    const words = ["subscribers", "import", path, "--dry-run", "--no-color"]
    const { out } = await onTerminal(words, { env: as(project) })
    expect(out).toContain(
      "3 lines in utf-8, of which 1 cannot be read or have no id and no address.",
    )
    expect(out).toContain("The server checks the other lines, and their values, when it imports")
    const real = await run(as(project), "import", path)
    expect([real.exit, real.data]).toMatchObject([8, { created: 0, failed: 3 }])
  })

  test("of broken lines of CSV imports all others", async () => {
    const project = await service.project()
    const path = file("a.csv", "id,email\na,a@x.test,,\n,b@x.test\nc,c@x.test,more\nd,no\ne,\n,,\n")
    const { exit, data } = await run(as(project), "import", path)
    expect([exit, data]).toMatchObject([8, { created: 2, failed: 3 }])
    const lines = readFileSync(`${path}.errors.csv`, "utf8").trimEnd().split("\r\n").slice(1)
    expect(lines.map((line) => line.split(",", 3))).toEqual([
      ["4", "c", "not_imported"],
      ["5", "d", "invalid_email"],
      ["6", "e", "not_imported"],
    ])
    expect(await get(project, "b@x.test")).toMatchObject({ email: "b@x.test" })
  })

  test("keeps the metadata of a cell of CSV as it is, or refuses the line", async () => {
    const project = await service.project()
    const cells = ['{"n":1}', '{"n":9007199254740993}', '{"n":1e999}', "[1,2]", "90071992547409931"]
    const lines = cells.map((cell, at) => `u${at},"${cell.replaceAll('"', '""')}"`)
    const path = file("meta.csv", ["id,metadata", ...lines, ""].join("\n"))
    const { exit, data } = await run(as(project), "import", path)
    expect([exit, data]).toMatchObject([8, { created: 3, failed: 2 }])
    const refused = readFileSync(`${path}.errors.csv`, "utf8").trimEnd().split("\r\n").slice(1)
    expect(refused.map((line) => line.split(",", 3))).toEqual([
      ["3", "u1", "not_imported"],
      ["4", "u2", "not_imported"],
    ])
    const kept = await Promise.all(["u0", "u3", "u4"].map((name) => get(project, name)))
    expect(kept.map(({ metadata }) => metadata)).toEqual([
      { n: 1 },
      { metadata: "[1,2]" },
      { metadata: "90071992547409931" },
    ])
  })

  test("of lines that are too much for one request takes several", async () => {
    const project = await service.project()
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, at]))
    const lines = Array.from({ length: 1000 }, (_, at) =>
      JSON.stringify({ external_id: `u${at}`, metadata }),
    )
    const path = file("wide.ndjson", lines.join("\n"))
    const { exit, data } = await run(as(project), "import", path)
    expect([exit, data]).toMatchObject([0, { created: 1000, failed: 0 }])
    expect(await get(project, "u999")).toMatchObject({ metadata })
  })

  test("of a CSV file with a quote that is not closed sends nothing, and names the line", async () => {
    using api = new FakeApi()
    const env = { BELFRY_URL: api.url, BELFRY_API_KEY: "svc_live_x" }
    const rows = Array.from({ length: 3000 }, (_, at) => `u${at},Ann\n`)
    rows[1997] = 'u1997,"Ann\n'
    const path = file("open.csv", `id,name\n${rows.join("")}`)
    for (const words of [[path], [path, "--dry-run"]]) {
      const { exit, err } = await run(env, "import", ...words)
      expect([exit, err]).toEqual([7, expect.stringContaining("opens in line 1999 is not closed")])
    }
    expect(api.seen).toEqual([])
  })

  test("refuses a line of JSON that does not end, and imports the others", async () => {
    const project = await service.project()
    const endless = `{"external_id":"b","name":"${"x".repeat(LONGEST_RECORD)}"}`
    const path = file("long.ndjson", `{"external_id":"a"}\n${endless}\n{"external_id":"c"}\n`)
    const { exit, data } = await run(as(project), "import", path)
    expect([exit, data]).toMatchObject([8, { created: 2, failed: 1 }])
    const [, line] = readFileSync(`${path}.errors.csv`, "utf8").split("\r\n")
    expect(line).toStartWith("2,")
    expect(line).toContain("The line has more than 65536 characters.")
  })

  test("sends fewer lines at a time where they are long", async () => {
    using api = new FakeApi()
    const env = { BELFRY_URL: api.url, BELFRY_API_KEY: "svc_live_x" }
    api.answer("POST /v1/subscribers/bulk", ({ body }) => {
      const { subscribers } = body as { subscribers: object[] }
      const data = { created: subscribers.length, updated: 0, skipped: 0, failed: [] }
      return { body: { data, meta: {} } }
    })
    const name = "x".repeat(50_000)
    const lines = Array.from({ length: 200 }, (_, at) => `u${at},${name}\n`)
    const path = file("long.csv", `id,name\n${lines.join("")}`)
    expect((await run(env, "import", path)).data).toMatchObject({ created: 200 })
    const sent = api.seen.map(({ body }) => (body as { subscribers: object[] }).subscribers.length)
    expect(sent).toEqual([84, 84, 32])
  })

  test("names the line that the server cannot read, and imports the lines around it", async () => {
    const project = await service.project()
    const deep = `${'{"a":'.repeat(100)}1${"}".repeat(100)}`
    const lines = ["a", "b", "c"].map((id) => `{"external_id":"${id}"}`)
    lines.splice(1, 0, `{"external_id":"deep","metadata":${deep}}`)
    const path = file("deep.ndjson", lines.join("\n"))
    const { exit, data } = await run(as(project), "import", path)
    expect([exit, data]).toMatchObject([8, { created: 3, failed: 1 }])
    expect(readFileSync(`${path}.errors.csv`, "utf8")).toContain("\r\n2,deep,invalid_json,")
  })

  test("skips those that exist, where it says so", async () => {
    const project = await service.project()
    await project.post("/v1/subscribers", { external_id: "a", name: "Ann" })
    const path = file("a.csv", "external_id,name\na,Other\nb,Ben\n")
    const { data } = await run(as(project), "import", path, "--mode", "skip")
    expect(data).toMatchObject({ created: 1, updated: 0, skipped: 1 })
    expect((await get(project, "a")).name).toBe("Ann")
  })

  test("as a dry run reads the file, and sends nothing", async () => {
    const project = await service.project()
    const path = file("a.csv", "id,email,Plan,X,constructor\na,a@x.test\nb,\n")
    const { exit, data } = await run(as(project), "import", path, "--dry-run", "--map", "X=")
    const sample = [{ external_id: "a", email: "a@x.test" }]
    expect([exit, data]).toMatchObject([
      0,
      { dry_run: true, lines: 2, refused: 1, left_out: ["Plan", "constructor"], sample },
    ])
    expect(await total(project)).toBe(0)
    expect(existsSync(`${path}.progress`)).toBe(false)
  })

  test.each([
    [["a.csv", "plan,name\npro,Ann\n"], 7],
    [["a.csv", new Uint8Array([0x69, 0x64, 0x0a, 0xff, 0, 0x0a])], 7],
  ] as const)("of a file that cannot be read says why: %#", async ([name, content], exit) => {
    const project = await service.project()
    expect((await run(as(project), "import", file(name, content))).exit).toBe(exit)
    expect(await total(project)).toBe(0)
  })

  test.each([
    ["--map", "Email"],
    ["--map", "Email=mail"],
    ["--mode", "replace"],
    ["--format", "xml"],
  ])("refuses %s %s", async (flag, value) => {
    const project = await service.project()
    const path = file("a.csv", "id\na\n")
    expect((await run(as(project), "import", path, flag, value)).exit).toBe(2)
  })

  test.each<[string, string[]]>([
    ["id,external_id,E-Mail,email\n1,a,old@x.test,a@x.test\n", []],
    ["external_id,id,email,E-Mail\na,1,a@x.test,old@x.test\n", []],
    ["external_id,Key,email\n1,a,a@x.test\n", ["--map", "Key=external_id"]],
    ["User ID,Customer ID,mail\n1,a,a@x.test\n", ["--map", "user-id="]],
  ])("reads each field from the column that is called like it: %j", async (text, flags) => {
    const project = await service.project()
    const { exit, data } = await run(as(project), "import", file("heads.csv", text), ...flags)
    expect([exit, data]).toMatchObject([0, { created: 1, failed: 0 }])
    expect(await get(project, "a")).toMatchObject({ external_id: "a", email: "a@x.test" })
  })

  test.each([
    ["User ID,Customer ID\n1,2\n", ["external_id", '"User ID" and "Customer ID"']],
    ["id,E-Mail,Mail\n1,a@x.test,b@x.test\n", ["email", '"E-Mail" and "Mail"']],
  ])("asks which of two columns holds a field: %j", async (text, [field, columns]) => {
    const project = await service.project()
    const { exit, err } = await run(as(project), "import", file("two.csv", text))
    const message = `FILE: the columns ${columns} both hold the ${field}.`
    expect([exit, JSON.parse(err).error.message]).toEqual([7, message])
    expect(await total(project)).toBe(0)
  })

  test("never takes its own file as the file of the errors", async () => {
    const project = await service.project()
    const path = file("a.csv", "id\na\n")
    const link = `${path}.link`
    symlinkSync(path, link)
    for (const errors of [path, link]) {
      const { exit, err } = await run(as(project), "import", path, "--errors", errors)
      expect([exit, err]).toEqual([2, expect.stringContaining("--errors names FILE itself")])
    }
    expect(readFileSync(path, "utf8")).toBe("id\na\n")
  })

  test("sends nothing where it cannot write what became of the lines", async () => {
    const project = await service.project()
    const path = file("a.csv", 'id,name\na,\nb,"two\nlines"\n')
    for (const errors of ["/nowhere/errors.csv", join(path, "..")]) {
      const { exit, err } = await run(as(project), "import", path, "--errors", errors)
      expect([exit, JSON.parse(err).error.code]).toEqual([74, "unwritable_file"])
    }
    mkdirSync(`${path}.progress.new`)
    const { exit, err } = await run(as(project), "import", path)
    expect([exit, JSON.parse(err).error.code]).toEqual([74, "unwritable_file"])
    expect([await total(project), existsSync(`${path}.errors.csv`)]).toEqual([0, false])
  })

  test("leaves a device alone that is named for the errors", async () => {
    const project = await service.project()
    const path = file("a.csv", "id,name\na,A\n")
    const device = `${path}.null`
    symlinkSync("/dev/null", device)
    expect((await run(as(project), "import", path, "--errors", device)).exit).toBe(0)
    expect(readlinkSync(device)).toBe("/dev/null")
  })

  test("goes on where it was interrupted, and counts no line twice", async () => {
    using api = new FakeApi()
    const env = { BELFRY_URL: api.url, BELFRY_API_KEY: "svc_live_x" }
    let is_down = true
    api.answer("POST /v1/subscribers/bulk", ({ body }) => {
      const { subscribers } = body as { subscribers: { external_id: string }[] }
      if (is_down && subscribers[0]?.external_id === "u2000")
        return { status: 403, body: { error: { code: "forbidden", message: "No." }, meta: {} } }
      const data = { created: subscribers.length, updated: 0, skipped: 0, failed: [] }
      return { body: { data, meta: {} } }
    })
    const lines = Array.from({ length: 3500 }, (_, at) => `u${at}\n`)
    const path = file("a.csv", `id\n${lines.join("")}`)
    expect((await run(env, "import", path)).exit).not.toBe(0)
    expect(JSON.parse(readFileSync(`${path}.progress`, "utf8"))).toMatchObject({ lines: 2000 })
    is_down = false
    api.seen.length = 0
    const { exit, data } = await run(env, "import", path)
    expect([exit, data]).toMatchObject([0, { created: 3500, failed: 0 }])
    const sent = api.seen.map(({ body }) => body as { subscribers: { external_id: string }[] })
    expect(sent.map(({ subscribers }) => subscribers[0]?.external_id)).toEqual(["u2000", "u3000"])
  })
})

test("a subscriber is made, changed, shown, listed and removed", async () => {
  const project = await service.project()
  const env = as(project)
  const made = await run(env, "upsert", "user/42", "--email", "ann@example.test", "--tag", "beta")
  expect([made.exit, made.data.external_id]).toEqual([0, "user/42"])
  expect((await run(env, "create", "user/42")).exit).toBe(5)
  const changed = await run(
    env,
    "patch",
    "user/42",
    "--status",
    "blocked",
    "--metadata",
    "plan=pro",
  )
  expect(changed.data).toMatchObject({ status: "blocked", metadata: { plan: "pro" } })
  expect((await run(env, "get", "user/42")).data).toEqual(changed.data)
  expect((await run(env, "get", "user/42", "--external")).data).toEqual(changed.data)
  const { out } = await onTerminal(["subscribers", "list", "--search", "ann", "--no-color"], {
    env: { ...env, COLUMNS: "140" },
  })
  expect(out).toMatch(/EXTERNAL ID +EMAIL .*STATUS/)
  expect(out).toMatch(/user\/42 +ann@example\.test .*blocked +beta/)
  const shown = await onTerminal(["subscribers", "get", "user/42", "--no-color"], { env })
  expect(shown.out).toMatch(/metadata +\{"plan":"pro"\}\s+tags +beta\s/)
  const removed = await run(env, "rm", "user/42", "nobody", "--yes")
  expect([removed.exit, removed.data]).toEqual([3, { removed: 1, not_found: ["nobody"] }])
})

test.each(["patch", "upsert"])("%s empties a field by the word none", async (verb) => {
  const project = await service.project()
  const env = as(project)
  const fields = {
    ...{ email: "ann@example.test", phone: "+4915112345678", name: "Ann", locale: "de-AT" },
    ...{ avatar_url: "https://example.test/a.png", timezone: "Europe/Vienna" },
  }
  await project.post("/v1/subscribers", { external_id: "ann", ...fields, tags: ["beta", "vip"] })
  const flags = Object.keys(fields).map((field) => `--${field.replace("_", "-")}`)
  const { exit, data } = await run(
    env,
    ...[verb, "ann", ...flags.flatMap((flag) => [flag, "none"]), "--tag", "none"],
  )
  const emptied = Object.fromEntries(Object.keys(fields).map((field) => [field, null]))
  expect([exit, data]).toMatchObject([0, { ...emptied, tags: [] }])
  const help = (await run(env, verb, "--help")).out.replaceAll(/\s+/g, " ")
  for (const flag of flags)
    expect(help).toMatch(new RegExp(`${flag} <[a-z-]+>[^<]*; none removes it`))
  expect(help).toContain("none removes all")
})

test("a new subscriber may be called none, and several tags may have it among them", async () => {
  const project = await service.project()
  const env = as(project)
  const made = await run(env, "create", "ann", "--name", "none", "--tag", "none")
  expect(made.data).toMatchObject({ name: "none", tags: ["none"] })
  const changed = await run(env, "patch", "ann", "--tag", "none", "--tag", "beta")
  expect(changed.data.tags).toEqual(["none", "beta"])
})

test("preferences are replaced by what is chosen, and never by nothing", async () => {
  const project = await service.project()
  const env = as(project)
  await run(env, "create", "ann")
  const preferences = (...words: string[]) => run(env, "preferences", ...words)
  const chosen = await preferences("set", "ann", "--choose", "email.enabled=off")
  expect([chosen.exit, chosen.data.email.enabled]).toEqual([0, false])
  for (const words of [
    ["set", "ann"],
    ["replace", "ann"],
    ["set-default"],
    ["replace", "ann", "--choose", "__proto__.enabled=off"],
    ["replace", "ann", "--choose", "email=on", "--choose", "email.enabled=off"],
    [
      ...["replace", "ann", "--choose", "email.categories=on"],
      ...["--choose", "email.categories.news=off"],
    ],
  ]) {
    expect((await preferences(...words)).exit).toBe(2)
  }
  expect((await preferences("get", "ann")).data.email.enabled).toBe(false)
  const emptied = await preferences("replace", "ann", "--choose", "email=none")
  expect([emptied.exit, emptied.data.email.enabled]).toEqual([0, true])
})

test("an empty name is a mistake of the command, which names it", async () => {
  const env = as(await service.project())
  for (const words of [
    ["get", ""],
    ["rm", "", "--yes"],
    ["export", ""],
  ]) {
    const { exit, err } = await run(env, ...words)
    expect([exit, err]).toEqual([2, expect.stringContaining("subscriber_id is empty")])
  }
})
