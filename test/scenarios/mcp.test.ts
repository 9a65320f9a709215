import { afterAll, beforeAll, expect, test } from "bun:test"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js"
import Ajv from "ajv/dist/2020"
import { signedInHome } from "../cli/signed-in"
import { codeBlocks } from "../docs/code-blocks"
import { type Belfry, binary, runBinary, startBelfry } from "../harness/binary"
import { lean } from "./serve"

let server: Belfry
let email_id: string

beforeAll(async () => {
  server = await startBelfry({ env: lean })
  email_id = await sendMail("Lunch")
})
afterAll(() => server[Symbol.asyncDispose]())

async function sendMail(subject: string): Promise<string> {
  const words = ["--to", "ann@mailbox.test", "--from", "me@mailbox.test", "--text", "Hi"]
  const sent = await server.cli("emails", "send", "--subject", subject, ...words)
  return (JSON.parse(sent.stdout) as { id: string }).id
}

async function keyWith(...scopes: string[]): Promise<string> {
  const flags = scopes.flatMap((scope) => ["--scope", scope])
  return (await server.cli("keys", "create", "--name", "m", "--quiet", ...flags)).stdout.trim()
}

/** The variables by which a program finds the server, with this key. */
const variables = (BELFRY_API_KEY: string) => ({
  ...{ HOME: server.home, BELFRY_URL: server.url, BELFRY_API_KEY },
})

/** The official client, which starts the binary as an assistant does. */
async function connected(args: string[], api_key: string, more: Record<string, string> = {}) {
  const client = new Client({ name: "test", version: "1" })
  const env = { ...variables(api_key), ...more }
  await client.connect(new StdioClientTransport({ command: binary, args, env, stderr: "ignore" }))
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

const allTools = async (client: Client) => (await client.listTools()).tools

/** What the API said: `data`, or an error and its code. */
async function called(client: Client, name: string, given: object) {
  const result = await client.callTool({ name, arguments: given as Record<string, unknown> })
  const [{ text }] = result.content as [{ text: string }]
  const { data, error } = text.startsWith("{") ? JSON.parse(text) : {}
  return { isError: result.isError === true, text, data, code: error?.code }
}

/** Writes lines to the command, the last one without an end, and reads what it answers until it ends. */
async function spoken(lines: string[], args: string[] = [], api_key = server.api_key) {
  const given = { home: server.home, env: variables(api_key), input: lines.join("\n") }
  const ended = await runBinary(["mcp", ...args], given)
  const answers = ended.stdout.split("\n").filter(Boolean)
  return { ...ended, answers: answers.map((line) => JSON.parse(line)) }
}

const request = (method: string, params: object = {}, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params })

test("the configuration of the guide lets a client list the tools and read a message", async () => {
  const block = codeBlocks("docs/mcp.md").find(({ language }) => language === "json")
  const { command, args, env } = JSON.parse(block?.code ?? "").mcpServers.belfry
  expect(command).toBe("belfry")
  expect(Object.keys(variables(""))).toContainValues(Object.keys(env))
  await using client = await connected(args, await keyWith("email:read"))
  expect(client.getServerVersion()).toMatchObject({ name: "belfry" })
  expect((await allTools(client)).map(({ name }) => name)).toContain("getEmailsByEmailId")
  const message = { isError: false, data: { id: email_id, subject: "Lunch" } }
  expect(await called(client, "getEmailsByEmailId", { email_id })).toMatchObject(message)
  expect(await client.ping()).toEqual({})
})

test("every tool has a schema of its arguments, and without --write it only reads", async () => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  await using reading = await connected(["mcp"], server.api_key)
  await using writing = await connected(["mcp", "--write"], server.api_key)
  await using trying = await connected(["mcp", "--write", "--dry-run"], server.api_key)
  const [reads, all] = [await allTools(reading), await allTools(writing)]
  expect(await allTools(trying)).toEqual(reads)
  expect(reads.length).toBeGreaterThan(80)
  expect(reads).toEqual(all.filter(({ name }) => name.startsWith("get")))
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  for (const { name, inputSchema, annotations } of all) {
    expect(name).toMatch(/^[A-Za-z]{1,64}$/)
    expect([name, ajv.validateSchema(inputSchema)]).toEqual([name, true])
    expect(annotations?.readOnlyHint).toBe(name.startsWith("get"))
  }
  const sends = all.find(({ name }) => name === "postEmails")?.inputSchema
  expect(Object.keys(sends?.properties ?? {})).toEqual(["body", "idempotency_key"])
  expect(sends?.required).toEqual(["body"])
  await expect(called(reading, "postEmails", { body: {} })).rejects.toThrow("-32602")
})

test("the scopes of the key decide the list, whether it may read the list of keys or not", async () => {
  const read = ["getScheduled", "getEmails", "getEmailsByEmailId"]
  const others = /^(postEmails$|getTemplates|deleteApiKeys)/
  for (const more of [[], ["api_keys:read"]]) {
    await using client = await connected(["mcp", "--write"], await keyWith("email:read", ...more))
    const names = (await allTools(client)).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(read))
    expect(names.includes("getApiKeys")).toBe(more.length > 0)
    expect(names.filter((name) => others.test(name))).toEqual([])
  }
})

const MAIL = { to: "ann@mailbox.test", from: "me@mailbox.test", subject: "Hi", text: "Hi" }

test("a tool that sends does so once for an idempotency key, and lists take null for nothing", async () => {
  await using client = await connected(["mcp", "--write"], server.api_key)
  const given = { body: MAIL, idempotency_key: "once" }
  const first = await called(client, "postEmails", given)
  expect(first.isError).toBe(false)
  expect((await called(client, "postEmails", given)).data).toEqual(first.data)
  const listed = await called(client, "getEmails", { per_page: 1, status: null })
  expect([listed.isError, listed.data.length]).toEqual([false, 1])
})

test("refusals are answers, and so is that a model could not read one: too long, or no text", async () => {
  await using client = await connected(["mcp", "--write"], server.api_key)
  const png = Buffer.from("89504e470d0a1a0a", "hex").toString("base64")
  const attachments = [{ filename: "a.png", content: png }]
  const body = { ...MAIL, text: "word ".repeat(60_000), attachments }
  const long = { email_id: (await called(client, "postEmails", { body })).data.id }
  const shown = JSON.parse(await (await server.request(`/v1/emails/${long.email_id}`)).text())
  const attachment_id = shown.data.attachments[0]?.id
  for (const [name, given, code, told] of [
    ["postEmails", { body: { ...MAIL, to: "ann" } }, "invalid_email", ""],
    ["postEmails", { body: MAIL, idempotency_key: "a\nb" }, "usage", ""],
    ["getEmailsByEmailId", { email_id: "0" }, "not_found", ""],
    ["getEmailsByEmailId", {}, undefined, "needs email_id"],
    ["getEmailsByEmailId", { email_id: null }, undefined, "needs email_id"],
    ["getEmailsByEmailId", [], "usage", "no object"],
    ["getEmailsByEmailId", { email_id: ".." }, "usage", "step of its path"],
    ["getEmailsByEmailId", { email_id, token: "t" }, "usage", "no argument token"],
    ["getEmailsByEmailId", { email_id, constructor: "t" }, "usage", "no argument constructor"],
    ["getEmailsByEmailId", long, "usage", "262144 bytes"],
    ["getEmailsByEmailIdAttachmentsByAttachmentId", { ...long, attachment_id }, "usage", "no text"],
  ] as const) {
    const refused = { isError: true, code, text: expect.stringContaining(told) }
    expect(await called(client, name, given)).toMatchObject(refused)
  }
})

test("messages of each revision are answered, also the last without an end of its line, and wrong ones refused, without an end of the process", async () => {
  for (const asked of [...SUPPORTED_PROTOCOL_VERSIONS, "1999-01-01"]) {
    const { answers } = await spoken([request("initialize", { protocolVersion: asked })])
    const known = asked > "2024-11-04"
    expect(answers[0].result.protocolVersion).toBe(known ? asked : SUPPORTED_PROTOCOL_VERSIONS[0])
  }
  const odd = { toString: 1 } // it has no text
  const { answers, code } = await spoken([
    ...["{", "7", "[]", "", request("resources/list"), request("tools/call", { name: "x" })],
    ...[request("ping", {}, null), request("ping", {}, odd), JSON.stringify({ id: 1, result: {} })],
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: odd }),
    ...[request("tools/call", { name: odd }), request("initialize", { protocolVersion: odd })],
    JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }),
    `[${request("ping", {}, "a")},${request("ping", {}, "b")}]`,
  ])
  expect(code).toBe(0)
  const codes = answers.map((one) => one.error?.code ?? one.map?.(({ id }: { id: string }) => id))
  expect(codes).toEqual([
    ...[-32700, -32600, -32600, -32601, -32602],
    ...[-32600, -32600, -32600, -32600, -32602, undefined, ["a", "b"]],
  ])
})

test("a key that is revoked, and a server that is gone, are answers of the tool", async () => {
  await using short_lived = await startBelfry({ env: lean })
  const made = await short_lived.cli("keys", "create", "--name", "m", "--scope", "email:read")
  const { id, key } = JSON.parse(made.stdout)
  const there = { BELFRY_URL: short_lived.url }
  await using client = await connected(["mcp"], key, there)
  await short_lived.cli("keys", "revoke", id, "--yes")
  expect((await called(client, "getEmails", {})).code).toBe("unauthorized")
  await short_lived.stop()
  expect((await called(client, "getEmails", {})).code).toBe("unreachable")
})

test("a sign-in, a wrong key and a message without an end end the command, which never prints its key", async () => {
  const { api_key } = server
  const wrong = await spoken([request("ping")], [], `${api_key.slice(0, -1)}x`)
  expect([wrong.code, wrong.stdout]).toEqual([4, ""])
  const endless = await spoken(["x".repeat(17_000_000)])
  expect([endless.code, endless.answers]).toEqual([2, []])
  const { env } = signedInHome(server.url, 600)
  const person = await runBinary(["mcp"], { env })
  expect([person.code, person.stderr]).toEqual([2, expect.stringContaining("not with a sign-in")])
  const call = request("tools/call", { name: "getApiKeys", arguments: {} })
  const told = await spoken([request("initialize"), call, request("tools/list")], ["--verbose"])
  expect(told.answers).toHaveLength(3)
  for (const one of [wrong, endless, told]) {
    expect(one.stdout + one.stderr).not.toContain(api_key.slice(17))
  }
})
