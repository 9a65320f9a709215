import { describe, expect, test } from "bun:test"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Command } from "commander"
import { enumerated, splitLine, suggest } from "../../cli/lib/completion/complete"
import { createProgram } from "../../cli/program"
import { missing } from "../harness/peers"
import { program } from "../harness/program"
import { openScreen } from "../harness/screen"
import { belfry, freshHome } from "./belfry"
import { email, FakeApi, KEY } from "./fake-api"

const NEWEST = "0199a1c2-0000-7000-8000-0000deadbee1"
const OTHER = "0199a1c3-0000-7000-8000-0000feedf00d"
const HOOK = "0199a1c4-0000-7000-8000-0000aaaa1111"
const DELIVERY = "0199a1c5-0000-7000-8000-0000bbbb2222"

function server() {
  const api = new FakeApi()
  api.data("GET /v1/emails", [email({ id: NEWEST, subject: "A\tb\nc" }), email({ id: OTHER })])
  api.data("GET /v1/webhooks", [{ id: HOOK, url: "https://a.b/" }])
  api.data(`GET /v1/webhooks/${HOOK}/deliveries`, [{ id: DELIVERY, event_type: "email.sent" }])
  api.data("GET /v1/domains", [{ id: NEWEST, domain: "acme.test" }])
  api.data("GET /v1/webhooks/events", [{ type: "email.sent", description: "Sent." }])
  return api
}

/** What a shell would be told behind `belfry …`: the candidates alone. */
async function offered(line: string, api?: FakeApi): Promise<string[]> {
  const env = { BELFRY_URL: api?.url ?? "localhost:1", BELFRY_API_KEY: KEY }
  const { exit, out, err } = await belfry(["__complete", "bash", `belfry ${line}`], { env })
  expect([exit, err]).toEqual([0, ""])
  return out.split("\n").flatMap((one) => one.split("\t")[0] || [])
}

test("commands and flags come from the tree", async () => {
  const root = createProgram().commands.map((command) => command.name())
  expect(await offered("")).toEqual([...root, "help"])
  expect(await offered("webh")).toEqual(["webhooks"])
  expect(await offered("help webhooks del")).toEqual(["delete", "deliveries"])
  expect(await offered("emails list --s")).toEqual([
    "--status",
    "--subject",
    "--subscriber",
    "--since",
  ])
  expect(await offered("--url localhost:1 emails li")).toEqual(["list"])
  expect(await offered("emails nope ")).toEqual([])
})

test("values come from what the flag says of itself", async () => {
  expect(await offered("emails list --status b")).toEqual(["bounced"])
  expect(await offered("domains update acme.test --receiving ")).toEqual(["on", "off"])
  expect(await offered("inbound list --kind d")).toEqual(["dmarc_report"])
  expect(await offered("sms list --direction ")).toEqual(["outbound", "inbound"])
  expect(await offered("inbound wait --extract ")).toEqual(["otp", "link"])
  expect(await offered("-o ")).toEqual(["table", "json", "ndjson"])
  expect(await offered("completion ")).toEqual(["bash", "zsh", "fish"])
  expect(await offered("keys create --scope email:")).toEqual(["send", "read"]) // bash breaks at :
  expect(await offered("emails send --file ")).toEqual([":files"])
  expect(await offered("emails send --subject ")).toEqual([])
})

test("a value that is joined to its flag is completed, too", async () => {
  using api = server()
  expect(await offered("emails list --status=b")).toEqual(["bounced"]) // bash breaks at =
  expect(await offered("emails list --output=")).toEqual(["table", "json", "ndjson"])
  expect(await offered("emails send --file=")).toEqual([])
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { out } = await belfry(["__complete", "zsh", "events", "list", "--event=email.s"], { env })
  expect(out).toBe("--event=email.sent\tSent.\n")
})

test("ids are those of the server, by their ends; domains by their names", async () => {
  using api = server()
  expect(await offered("emails get ", api)).toEqual([NEWEST, OTHER].map((id) => id.slice(-8)))
  expect(await offered("emails get de", api)).toEqual(["deadbee1"])
  expect(await offered("emails get 0199a1c3-", api)).toEqual([OTHER])
  expect(await offered("webhooks deliveries aaaa1111 ", api)).toEqual(["bbbb2222"])
  expect(await offered("domains check ", api)).toEqual(["acme.test"])
  expect(await offered("events list --event em", api)).toEqual(["email.sent", "email.*"])
  expect(await offered(`webhooks test ${HOOK} --event em`, api)).toEqual(["email.sent"])
  expect(await offered("trigger em", api)).toEqual(["email.sent"]) // makes one event, not a family
  expect(await offered(`emails get --url ${api.url} f`)).toEqual(["feedf00d"])
})

test("what is told of a candidate is one line, whatever stands in a subject", async () => {
  using api = server()
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { out } = await belfry(["__complete", "zsh", "emails", "get", "de"], { env })
  expect(out).toBe("deadbee1\tann@mailbox.test  A b c\n")
})

test("without a server, a key or sense there is nothing to offer, and no error in the line", async () => {
  expect(await offered("emails get ")).toEqual([])
  expect(await offered("emails get --profile nobody ")).toEqual([])
  expect((await belfry(["__complete"])).exit).toBe(0)
})

test("every flag that takes one of a few words offers them", () => {
  const leaves = (command: Command): Command[] => [command, ...command.commands.flatMap(leaves)]
  const few = /<(status|format|mode|kind|category|window|role|form)>/
  const silent = leaves(createProgram()).flatMap(({ options }) =>
    options.filter((one) => few.test(one.flags) && enumerated(one.description).length < 2),
  )
  // Statuses of requests are numbers and classes of them, and senders name categories themselves.
  expect(new Set(silent.map(({ description }) => description))).toEqual(
    new Set([
      "show only this status code or class: 404, 4xx",
      "role in the organization (default: member)",
      "kind of the mail, which its recipient can unsubscribe from",
      "kind of the text, which its recipient can unsubscribe from",
      "show only emails of this category",
      "show only messages of this category",
      "kind of the message, which its recipient can unsubscribe from",
      "ask for messages of this category",
    ]),
  )
})

test("an unfinished line is split as a shell would", () => {
  expect(splitLine("belfry emails send --subject 'a b' ")).toEqual({
    words: ["belfry", "emails", "send", "--subject", "a b", ""],
    typed_before: 0,
  })
  expect(splitLine('x "a\\').words).toEqual(["x", "a\\"])
  expect(splitLine("x http://a").typed_before).toBe(5)
  expect(suggest(["emails", "tail", "--", "-"], createProgram()).is).toBe("ids")
})

/** A folder for the PATH with `belfry` in it, as it would be installed. */
function installed(): string {
  const folder = join(freshHome(), "bin")
  mkdirSync(folder)
  const path = join(folder, "belfry")
  writeFileSync(path, `#!/bin/sh\nexec ${program.map((word) => `'${word}'`).join(" ")} "$@"\n`)
  chmodSync(path, 0o755)
  return folder
}

const started = {
  bash: [["bash", "--norc", "--noprofile", "-i"], "source <(belfry completion bash)"],
  zsh: [["zsh", "-f", "-i"], "source <(belfry completion zsh)"],
  fish: [["fish", "--no-config", "-i"], "belfry completion fish | source"],
} as const

describe.skipIf(missing("tmux", "zsh", "fish"))("in a real shell", () => {
  test.each(Object.entries(started))("%s completes commands, values and ids", async (_, shell) => {
    using api = server()
    const [command, load] = shell
    const PATH = `${installed()}:${process.env.PATH}`
    const own = { HOME: freshHome(), BELFRY_URL: api.url, BELFRY_API_KEY: KEY, PS1: "% " }
    const env = { ...own, PATH }
    await using screen = await openScreen([...command], { columns: 100, lines: 30, env })
    await screen.press(`${load}; echo lo''aded`, "Enter")
    await screen.shows("loaded")
    const completed = async (begun: string, whole: string) => {
      await screen.press(begun, "Tab")
      await screen.shows(whole)
      await screen.press("C-u")
    }
    await completed("belfry webho", "belfry webhooks")
    await completed("belfry emails list --status bou", "--status bounced")
    await completed("belfry emails list --status=bou", "--status=bounced")
    await completed("belfry emails get dead", "emails get deadbee1")
    await completed("belfry keys create --scope email:se", "--scope email:send")
    await completed(`belfry --url ${api.url} domains check ac`, "domains check acme.test")
    await screen.press("belfry emails get ", "Tab", "Tab")
    await screen.until("both ids", (text) => text.includes("deadbee1") && text.includes("feedf00d"))
  })
})
