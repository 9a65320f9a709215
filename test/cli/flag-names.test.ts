import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { box } from "./box"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()
const { key } = await service.project()
const env = { BELFRY_URL: url, BELFRY_API_KEY: key }

/** What a person reads, on one line of any length. */
async function told(...words: string[]) {
  const { exit, out } = await onTerminal([...words, "--no-color"], { env, columns: 400 })
  return { exit, out }
}

const send = ["emails", "send", "--from", "me@mailbox.test", "--subject", "Hi", "--text", "x"]
const create = ["webhooks", "create"]
const one_address = "The value must be one email address."

test.each<[string[], string]>([
  [[...send, "--to", "ann"], `--to: ${one_address} You gave "ann".`],
  [
    [...send, "--to", "a@mailbox.test", "--reply-to", "no"],
    `--reply-to: ${one_address} You gave "no".`,
  ],
  [["emails", "list", "--status", "sentt"], '--status "sentt": '],
  [["events", "list", "--event", "email.snet"], "--event: There is no event type email.snet"],
  [["keys", "create", "--name", "n", "--scope", "email:nope"], "--scope: There is no scope"],
  [["keys", "create", "--name", "n", "--scope", "email:send", "--ip", "300.1"], '--ip "300.1": '],
  [["trigger", "nope.x"], "TYPE: There is no event type nope.x"],
  [[...create, "ftp://x", "--event", "*"], 'URL "ftp://x": '],
  [[...create, "https://a.b/", "--event", "*", "--max-attempts", "30"], '--max-attempts "30": '],
  [["domains", "add", "not_a_domain"], 'DOMAIN "not_a_domain": '],
])("%p names what was typed: %s", async (words, expected) => {
  const { exit, out } = await told(...words)
  expect(exit).toBe(7)
  expect(out).toStartWith(`✗ ${expected}`)
})

test("several mistakes are a line each", async () => {
  const { out } = await told(...send, "--to", "ann", "--reply-to", "nope", "--header", "Bcc: x@y.z")
  const [head = "", ...lines] = out.split(/\r?\n/)
  expect(head).toBe("✗ 3 values are wrong. (validation_error)")
  expect(
    lines
      .map((line) => line.trim().split(/[: ]/)[0])
      .slice(0, 3)
      .sort(),
  ).toEqual(["--header", "--reply-to", "--to"])
})

test("what stands wrong in a file is told by its path there, and what a flag replaced by the flag", async () => {
  const file = join(freshHome(), "mail.json")
  writeFileSync(
    file,
    JSON.stringify({ to: "ann@mailbox.test", subject: 7, text: "x", from: "a@b.c" }),
  )
  const words = ["emails", "send", "--file", file]
  expect((await told(...words)).out).toStartWith("✗ --file: subject: ")
  expect((await told(...words, "--subject", "Hi", "--to", "no")).out).toStartWith(
    `✗ --to: ${one_address}`,
  )
})

test("a secret that is refused is not repeated", async () => {
  const file = join(freshHome(), "secret")
  writeFileSync(file, "whsec_hunter2")
  const { out } = await told(...create, "https://a.b/", "--event", "*", "--secret-file", file)
  expect(out).toStartWith("✗ --secret-file: ")
  expect(out).not.toContain("hunter2")
})

test("in a pipe the error is the API's own", async () => {
  const { err } = await belfry([...send, "--to", "ann", "--reply-to", "nope"], { env })
  const paths = JSON.parse(err).error.details.fields.map(({ path }: { path: string }) => path)
  expect(paths.sort()).toEqual(["reply_to", "to"])
})

test("on a server without an owner every permission error says belfry setup", async () => {
  await using up = await box()
  const setup = `belfry setup ${up.url}`
  const at = (api_key: string) => ({ HOME: up.home, BELFRY_URL: up.url, BELFRY_API_KEY: api_key })
  const HOME = up.home
  for (const [words, given] of [
    [["accounts", "list"], { HOME }], // a key, where a person is needed
    [["queue", "pause", "email"], { HOME }],
    [["emails", "list"], at("svc_live_wrong")],
    [["emails", "list"], { BELFRY_URL: up.url }], // no key at all
  ] as const) {
    const shown = await onTerminal([...words, "--no-color"], { env: given, columns: 200 })
    expect([shown.exit, shown.out]).toEqual([4, expect.stringContaining(`\`${setup}\``)])
    const piped = await belfry([...words], { env: given })
    expect(JSON.parse(piped.err).error.details.next).toBe(setup)
  }
  const home = freshHome()
  const own = ["--setup-token", up.setup_token, "--email", "ann@mailbox.test", "--password-stdin"]
  await belfry(["setup", up.url, ...own], { env: { HOME: home }, stdin: "Correct-Horse-7" })
  const after = await belfry(["accounts", "list"], { env: { HOME } })
  expect([after.exit, after.err.includes("belfry setup")]).toEqual([4, false])
})
