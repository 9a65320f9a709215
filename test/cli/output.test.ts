import { expect, test } from "bun:test"
import { eventLine } from "../../cli/commands/events"
import { normalized } from "../../cli/lib/arguments"
import { fieldsOf } from "../../cli/lib/client"
import { FIRST_EMAIL } from "../../cli/lib/flags"
import { type Columns, fields, table, wide } from "../../cli/lib/table"
import { cleanLine, cleanText, painter, wantsColour } from "../../cli/lib/terminal"
import { createProgram } from "../../cli/program"
import { scopes } from "../../src/client/operations"
import { Accepted, Email } from "../../src/emails/schemas"
import { SCOPES } from "../../src/identity/scopes"
import { program } from "../harness/program"
import { onTerminal } from "./belfry"
import { email, FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const plain = painter(false)

test("fields show lists with commas and anything deeper as JSON, and leave out what is empty", () => {
  const record = {
    ...{ id: "a", none: null, text: "", list: [], object: {}, zero: 0, off: false },
    ...{ tags: ["x", "y"], metadata: { plan: "pro", deep: [1] }, rows: [{ n: 1 }] },
  }
  const lines = fields(Object.entries(record), plain).split("\n")
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ["id", "a"],
    ["zero", "0"],
    ["off", "false"],
    ["tags", "x, y"],
    ["metadata", '{"plan":"pro","deep":[1]}'],
    ["rows", '[{"n":1}]'],
  ])
})

test("a pipe gets the resource as the API gave it", async () => {
  using api = new FakeApi()
  const record = email({ a_field_of_tomorrow: [1] })
  api.data(`GET /v1/emails/${ID}`, record)
  const { exit, out } = await belfry(["emails", "get", ID], { env: at(api) })
  expect(exit).toBe(0)
  expect(JSON.parse(out)).toEqual(record)
})

test("a list in a pipe is an array, with --ndjson an object a line, with --quiet ids", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email(), email({ id: "two" })], { next_cursor: null })
  const run = async (...words: string[]) =>
    (await belfry(["emails", "list", ...words], { env: at(api) })).out
  expect(JSON.parse(await run())).toHaveLength(2)
  const lines = (await run("--ndjson")).trim().split("\n")
  expect(lines.map((line) => JSON.parse(line).id)).toEqual([ID, "two"])
  expect(await run("--quiet")).toBe(`${ID}\ntwo\n`)
})

test("--json=fields gives these fields only, also from inside", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  const words = ["emails", "list", "--json=id,to.email,provider.name,"]
  const { out } = await belfry(words, { env: at(api) })
  const fields = { id: ID, "to.email": "ann@mailbox.test", "provider.name": null }
  expect(JSON.parse(out)).toEqual([fields])
})

test("a field that no record has is refused, naming those there are", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  api.data(`GET /v1/emails/${ID}`, email({ metadata: {} }))
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const run = (...words: string[]) => belfry(["emails", ...words], { env: at(api) })
  for (const words of [
    ["list", "--json=id,sttus"],
    ["get", ID, "--json=to.emial"],
    ["list", "--ndjson", "--json=sttus"],
  ]) {
    const { exit, out, err } = await run(...words)
    expect([words, exit, out]).toEqual([words, 2, ""])
    expect(JSON.parse(err).error.message).toMatch(/no field "(sttus|to\.emial)"/)
  }
  expect((await run("get", ID, "--json=metadata.order")).out).toBe('{"metadata.order":null}\n')

  const before = api.seen.length
  const send = ["send", "--to", "a@b.c", "--json=id,metadata"]
  expect((await run(...send)).exit).toBe(2) // before it is sent: nobody sends it twice for that
  expect(api.seen).toHaveLength(before)
})

test("the fields that changes promise are those of the API", () => {
  const names = ({ properties }: { properties: object }) => Object.keys(properties)
  expect(fieldsOf("POST /v1/emails")).toEqual(names(Accepted))
  expect(fieldsOf("POST /v1/emails/{email_id}/cancel")).toEqual(
    expect.arrayContaining(names(Email)),
  )
  expect<readonly string[]>(scopes).toEqual(SCOPES)
})

test("what can be read only once is what --quiet prints", async () => {
  using api = new FakeApi()
  api.data("POST /v1/api-keys", { id: ID, name: "ci", key: "svc_live_new" })
  const words = ["keys", "create", "--name", "ci", "--scope", "email:send", "--quiet"]
  expect((await belfry(words, { env: at(api) })).out).toBe("svc_live_new\n")
  expect((await belfry(["version", "--quiet"])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test("an empty list says so on a terminal, and how to fill it", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [])
  const { out } = await onTerminal(["emails", "list", "--no-color"], { env: at(api) })
  expect(out.trim().split(/\r?\n/)).toEqual(["none", `→ ${FIRST_EMAIL}`])
})

test("a next step leads to the same server, with the same filters", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()], { next_cursor: "c", has_more: true })
  const words = ["emails", "list", "--subject", "It's", "--limit", "1", "--url", `${api.url}/v1`]
  const { out } = await onTerminal([...words, "--api-key", KEY, "--no-color"])
  const next = `belfry emails list --subject 'It'\\''s' --limit 2 --url ${api.url}/v1`
  expect(out).toContain(`→ ${next}\r\n`)
  expect(out).not.toContain(KEY)
})

test.each([["emails list"], ["emails list --quiet"], ["--help"], ["emails send --help"], ["-V"]])(
  "%s into a full disk is 74, never a silent success",
  async (line) => {
    using api = new FakeApi()
    api.data("GET /v1/emails", [email()])
    const main = program.join(" ")
    const child = Bun.spawn(["sh", "-c", `${main} ${line} > /dev/full`], {
      env: { ...process.env, ...at(api) },
      stderr: "pipe",
    })
    expect(await child.exited).toBe(74)
    expect(await child.stderr.text()).toContain("ENOSPC")
  },
)

test("--json takes fields with a space too, but no word that the command needs", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  api.data(`GET /v1/emails/${ID}`, email())
  api.data("GET /v1/emails/idless", email())
  const run = async (...words: string[]) => {
    const { exit, out, err } = await belfry(words, { env: at(api) })
    return exit === 0 ? JSON.parse(out) : [exit, err]
  }
  const two = { id: ID, status: "delivered" }
  expect(await run("emails", "list", "--json", "id,status")).toEqual([two])
  expect(await run("--json", "id,status", "emails", "list")).toEqual([two])
  expect(await run("emails", "get", ID, "--json", "id,status")).toEqual(two)
  expect(await run("emails", "get", "--json", "id,status", ID)).toEqual(two)
  expect(await run("emails", "list", "--json", "--limit", "1")).toHaveLength(1)
  expect(await run("--json", "emails", "get", "--json", ID)).toMatchObject(two)
  expect(await run("emails", "get", "--json", "idless")).toMatchObject(two) // the id, not a field
  expect(api.seen.at(-1)?.path).toBe("/v1/emails/idless")
})

test("a value of a flag is no flag: --subject --json sends a mail with that subject", () => {
  const words = ["emails", "send", "--subject", "--json", "--to", "id", "--", "--json", "id"]
  expect(normalized(words, createProgram())).toEqual(words)
})

test("-o says the form, off a terminal too", async () => {
  using api = new FakeApi()
  const subject = "a long subject that no pipe has a reason to cut, however long it is"
  api.data("GET /v1/emails", [email({ subject })])
  const list = (...words: string[]) => belfry(["emails", "list", ...words], { env: at(api) })
  const { out } = await list("-o", "table")
  expect(out).toMatch(/^ID +TO +SUBJECT/)
  expect(out).toContain(subject)
  expect(out).not.toContain("\u001b")
  expect(JSON.parse((await list("-o", "json")).out)).toHaveLength(1)
  expect(JSON.parse((await list("-o", "ndjson", "--json", "id")).out)).toEqual({ id: ID })
  const shown = await onTerminal(["emails", "list", "--output", "json"], { env: at(api) })
  expect(JSON.parse(shown.out)).toHaveLength(1)
  for (const words of [
    ["-o", "yaml"],
    ["-o", "table", "--json"],
    ["-o", "table", "--quiet"],
  ]) {
    expect((await list(...words)).exit).toBe(2)
  }
})

test("a terminal gets a table with ages, and one next step", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  const { out } = await onTerminal(["emails", "list"], { env: at(api) })
  expect(out).toContain("STATUS")
  expect(out).toContain("1 min")
  expect(out).toContain("\u001b[32mdelivered")
  expect(out).toContain(`→ belfry emails get ${ID}`)
})

test("NO_COLOR and --no-color leave a terminal without one escape", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email()])
  for (const [words, env] of [
    [[], { NO_COLOR: "1" }],
    [["--no-color"], {}],
    [[], { TERM: "dumb" }],
  ] as const) {
    const { out } = await onTerminal(["emails", "list", ...words], { env: { ...at(api), ...env } })
    expect(out).toContain("delivered")
    expect(out).not.toContain("\u001b")
  }
})

test("colour is decided by flag, NO_COLOR, CLICOLOR_FORCE, and the kind of terminal", () => {
  expect(wantsColour({}, true, false)).toBe(true)
  expect(wantsColour({}, false, false)).toBe(false)
  expect(wantsColour({ CLICOLOR_FORCE: "1" }, false, false)).toBe(true)
  expect(wantsColour({ CLICOLOR_FORCE: "1", NO_COLOR: "1" }, true, false)).toBe(false)
  expect(wantsColour({ CLICOLOR_FORCE: "1" }, true, true)).toBe(false)
})

test("a subject cannot move the cursor, ring the bell, or turn the line around", async () => {
  using api = new FakeApi()
  const evil = "\u001b[2J\u001b]0;owned\u0007pay\u009b31m me\r\n\u202eexe.txt\u0000"
  api.data("GET /v1/emails", [email({ subject: evil })])
  const { out } = await onTerminal(["emails", "list", "--no-color"], { env: at(api) })
  expect(out).toContain("pay")
  expect(out).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e]/)
  expect(out).not.toContain("owned")
})

test("a body keeps its line breaks and loses everything else", () => {
  expect(cleanText("a\r\nb\tc\u001b[31md\u0007")).toBe("a\nb\tcd")
  expect(cleanLine("a\r\nb\tc")).toBe("a b c")
})

test("a narrow terminal shortens what may be shortened, never an id", () => {
  const rows = [{ id: ID, subject: "a very long subject that cannot fit in here" }]
  const columns = { ID: "id", SUBJECT: wide((row: { subject: string }) => row.subject) } as const
  const [, line = ""] = table(rows, columns, 60, plain).split("\n")
  expect(Bun.stringWidth(line)).toBe(60)
  expect(line).toStartWith(`${ID}  a very long`)
  expect(line).toEndWith("…")
})

test("on a narrow terminal spare columns go before the others are cut to nothing", () => {
  const rows = [{ id: ID, type: "email.delivered", tries: "1/6" }]
  type Row = (typeof rows)[number]
  const columns: Columns<Row> = {
    ID: "id",
    TYPE: wide(({ type }) => type),
    TRIES: { cell: ({ tries }) => tries, spare: 1 },
    AGE: { cell: () => "12 min", spare: 2 },
  }
  const heads = (width: number) => table(rows, columns, width, plain).split("\n")[0]?.split(/ +/)
  expect(heads(80)).toEqual(["ID", "TYPE", "TRIES", "AGE"])
  expect(heads(60)).toEqual(["ID", "TYPE", "TRIES"])
  expect(heads(53)).toEqual(["ID", "TYPE"])
})

test("on a narrow terminal an event is one line, its id short", () => {
  const at = (width: number) => ({
    paint: plain,
    terminal: { in: true, out: true, err: true, moves: true, width, colour: false },
  })
  const data = { message_id: ID, recipient_email: "ann@mailbox.test", simulated: true }
  const created_at = "2026-11-21T12:00:00.000Z"
  const event = { id: "evt_1", type: "email.sent", api_version: "2026-02-01", created_at, data }
  expect(eventLine(event, at(120))).toEndWith(`${ID}  ann@mailbox.test  simulated`)
  expect(eventLine(event, at(80))).toEndWith(" 00000001  ann@mailbox.test  simulated")
})

test("a reader that leaves early is no error", async () => {
  using api = new FakeApi()
  const many = Array.from({ length: 100 }, () => email({ subject: "x".repeat(3000) }))
  api.data("GET /v1/emails", many, { next_cursor: "more", has_more: true })
  const main = program.join(" ")
  const line = `${main} emails list --limit 2000 --ndjson | head -1 | wc -l; echo "\${PIPESTATUS[0]}"`
  const child = Bun.spawn(["bash", "-c", line], { env: { ...process.env, ...at(api) } })
  const [lines, status] = (await new Response(child.stdout).text()).trim().split("\n")
  expect(lines).toBe("1")
  expect(["0", "141"]).toContain(status ?? "")
})

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })
