import { expect, test } from "bun:test"
import { Command } from "commander"
import { addResources } from "../../cli/lib/add-resources"
import { fieldValue } from "../../cli/lib/field-flags"
import { plainNouns } from "../../cli/lib/plain-nouns"
import { row } from "../../cli/lib/resource"
import { resources } from "../../cli/resources"
import { operations } from "../../src/client/operations"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

/** The command that a row becomes. */
function commandOf(one: ReturnType<typeof row>): Command {
  const program = new Command("belfry")
  addResources(program, [{ noun: "things", about: "manage things", rows: [one] }], () => true)
  const [command] = program.commands[0]?.commands ?? []
  if (!command) throw new Error("no command")
  return command
}

const flagsOf = (command: Command) => command.options.map(({ flags }) => flags)

function helpOf(command: Command): string {
  let text = ""
  command.configureOutput({ writeOut: (part) => (text += part) })
  command.outputHelp()
  return text
}

test("a row needs no more than its name and its route", () => {
  const list = commandOf(row("list", "GET /v1/api-keys"))
  expect(list.description()).toBe("list API keys, newest first")
  expect(flagsOf(list)).toEqual(["--status <status>", "--limit <number>"])
  expect(helpOf(list)).toContain("show only this status: active, revoked or expired")
  expect(helpOf(list)).toContain("$ belfry things list")
})

test("fields of the body are flags, required where the schema requires them", () => {
  const create = commandOf(row("create", "POST /v1/projects"))
  expect(flagsOf(create)).toEqual(["--name <name>", "--slug <slug>", "--idempotency-key <key>"])
  expect(create.options.filter(({ mandatory }) => mandatory).map(({ long }) => long)).toEqual([
    "--name",
  ])
})

test("an argument fills its parameter of the path, and the next one a field of the body", () => {
  const change = commandOf(row("set-role <user> <role>", "PATCH /v1/accounts/me/members/{user_id}"))
  expect(flagsOf(change)).toEqual([])
})

test("second names of a field get no flag", () => {
  const list = flagsOf(commandOf(row("list", "GET /v1/emails")))
  expect(operations["GET /v1/emails"].query).toHaveProperty("start_date")
  expect(list).toContain("--since <when>")
  expect(list.filter((flags) => flags.includes("date"))).toEqual([])
})

test("what a person types becomes what the schema says", () => {
  const text = { type: "string", nullable: true } as const
  expect(fieldValue("description", text, "none", { option: "--description" })).toBeNull()
  expect(fieldValue("expires_at", text, "never", { option: "--expires" })).toBeNull()
  const about = "your name"
  expect(fieldValue("name", text, "none", { option: "--name", about })).toBe("none")
  const list = { type: "array", items: "string" } as const
  expect(fieldValue("scopes", list, ["a,b", "c"], { option: "--scope" })).toEqual(["a", "b", "c"])
  const number = { type: "integer" } as const
  expect(fieldValue("rate_limit", number, "10", { option: "--rate-limit" })).toBe(10)
  expect(() => fieldValue("rate_limit", number, "ten", { option: "--rate-limit" })).toThrow(
    '--rate-limit: "ten" is not a whole number',
  )
  expect(fieldValue("enabled", { type: "boolean" }, "off", { option: "--enabled" })).toBe(false)
})

test("a change sends what was said and nothing else; with --dry-run it sends nothing", async () => {
  using api = new FakeApi()
  api.data(`PATCH /v1/projects/${ID}`, { id: ID, name: "Shop" })
  const at = ["--url", api.url, "--api-key", KEY]
  const dry = await belfry(["projects", "update", ID, "--name", "Shop", "--dry-run", ...at])
  expect([dry.exit, JSON.parse(dry.out).body, api.seen]).toEqual([0, { name: "Shop" }, []])
  await belfry(["projects", "update", ID, "--name", "Shop", ...at])
  expect(api.seen.map(({ body }) => body)).toEqual([{ name: "Shop" }])
  const nothing = await belfry(["projects", "update", ID, ...at])
  expect([nothing.exit, JSON.parse(nothing.err).error.message]).toEqual([
    2,
    "nothing to change: give at least one flag",
  ])
})

test("a list that has more names the command for more, with the flags that were given", async () => {
  using api = new FakeApi()
  const key = { id: ID, name: "ci", prefix: "p", last4: "1234", scopes: [], status: "active" }
  api.data("GET /v1/api-keys", [key], { has_more: true, next_cursor: "c" })
  const words = ["keys", "list", "--status", "active", "--limit", "1", "--no-color"]
  const { out } = await onTerminal(words, { env: { BELFRY_URL: api.url, BELFRY_API_KEY: KEY } })
  expect(out).toContain("→ belfry keys list --status active --limit 2")
})

test("every noun stands in the table once", () => {
  const nouns = resources.map(({ noun }) => noun)
  expect(nouns.filter((noun, at) => nouns.indexOf(noun) !== at)).toEqual([])
})

test("a plain noun that no row names gets its commands from its routes", () => {
  expect(plainNouns(resources)).toEqual([])
  const [noun] = plainNouns(resources.filter(({ noun }) => noun !== "categories"))
  const item = "/v1/subscribers/categories/{category_id}"
  expect(noun?.noun).toBe("categories")
  expect(noun?.rows.map(({ use, route }) => `${use}: ${route}`)).toEqual([
    "list: GET /v1/subscribers/categories",
    "create: POST /v1/subscribers/categories",
    `get <id>: GET ${item}`,
    `update <id>: PATCH ${item}`,
    `rm <id>: DELETE ${item}`,
  ])
  const program = new Command("belfry")
  addResources(program, noun ? [noun] : [], () => true)
  const create = program.commands[0]?.commands.find((command) => command.name() === "create")
  expect(create && flagsOf(create)).toContain("--name <name>")
})
