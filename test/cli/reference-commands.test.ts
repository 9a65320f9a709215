import { expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import type { Command } from "commander"
import { createProgram } from "../../cli/program"
import { commandLines } from "../../src/pages/docs/command-lines"
import { BY_HAND, SAME_AS } from "../harness/command-lines"
import { root } from "../harness/migrations"
import { published } from "../harness/published"
import { sizes } from "../harness/sizes"
import { freshHome } from "./belfry"
import { anonymous, everything } from "./every-command"
import { type FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"
import { session, signedInHome } from "./signed-in"

const PASSWORD = "Correct-Horse-7"

/** The files that the lines name. */
const FOLDER = freshHome()
writeFileSync(join(FOLDER, "messages.json"), '[{"to": "a@b.c"}]')
writeFileSync(join(FOLDER, "texts.json"), '[{"to": "+14155550100", "body": "hi"}]')
writeFileSync(join(FOLDER, "people.csv"), "Id,Email\nuser-42,a@b.c\n")
writeFileSync(join(FOLDER, "bounced.txt"), "a@b.c\n")
writeFileSync(join(FOLDER, "receipt.html"), "<p>Hi</p>\n")

/** The words of a line as a shell would give them, without what it redirects. */
function wordsOf(line: string): string[] {
  const [command = ""] = line.split(/ [<>] /)
  const words = command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []
  return words.map((word) => word.replaceAll(/['"]/g, "")).slice(1)
}

/** What a person would type, where the line asks a question. */
const ANSWERS: Record<string, string[]> = {
  login: ["--password-stdin"],
  setup: ["--password-stdin", "--setup-token", "belfry_setup_1"],
  signup: ["--password-stdin"],
  "invitations accept": ["--password-stdin"],
  "me delete": ["--password-stdin"],
  "me password": ["--password-stdin"],
  "password reset": ["--password-stdin"],
  "events tail": ["--since", "1h", "--limit", "1"],
  "inbox tail": ["--limit", "1"],
}

/** These are about people that are signed in, and nothing to a key. */
const PERSONAL = ["whoami", "logout"]

/** What the command asked the server for, as `METHOD /path`. */
async function askedBy(line: string): Promise<{ asked: string[]; ended: string }> {
  using api = everything()
  answerFurther(api)
  const words = wordsOf(line).map((word) =>
    word.replace("https://mail.example.test", api.url).replace("…", "1"),
  )
  const isOne = (name: string) => words.join(" ").startsWith(name)
  const more = Object.keys(ANSWERS)
    .filter(isOne)
    .flatMap((name) => ANSWERS[name] ?? [])
  const named = [...anonymous, ...PERSONAL].some(isOne) ? [] : ["--api-key", KEY]
  const url = words.includes(api.url) || PERSONAL.some(isOne) ? [] : ["--url", api.url]
  const { env } = signedInHome(api.url, 600)
  const stdin = `${PASSWORD}\n${PASSWORD}\n`
  const flags = [...more, ...url, ...named, "--yes", "--timeout", "5s"]
  const { exit, err } = await belfry([...words, ...flags], { env, stdin, cwd: FOLDER })
  return { asked: api.seen.map(({ method, path }) => `${method} ${path}`), ended: `${exit} ${err}` }
}

/** Records under the names that the lines have. */
function answerFurther(api: FakeApi): void {
  const category = { id: ID, slug: "newsletter", name: "News", critical: false, default: "on" }
  api.data("GET /v1/subscribers/categories", [
    { ...category, visibility: "public", channels: ["email"] },
  ])
  const device = { device_code: "d", user_code: "BCDF-GHJK", expires_in: 600, interval: 1 }
  api.data("POST /v1/session/device", { ...device, verification_url: `${api.url}/device` })
  api.data("POST /v1/session/device/token", session())
}

const shapeOf = (route: string) => new RegExp(`^${route.replaceAll(/\{\w+\}/g, "[^/]+")}$`)

test("a line is for an operation that exists", async () => {
  const { paths } = await published()
  const known = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(Object.keys(commandLines).filter((route) => !known.includes(route))).toEqual([])
})

test("an operation that does the same as another one has its line", () => {
  for (const [route, other] of Object.entries(SAME_AS)) {
    expect([route, commandLines[route]]).toEqual([route, commandLines[other] ?? "no line"])
  }
})

test("the remedies of the error codes name commands that exist", () => {
  const text = readFileSync(join(root, "docs/errors.md"), "utf8").replaceAll("\n", " ")
  const spans = [...text.matchAll(/`belfry ([a-z][^`]*)`/g)].map(([, span = ""]) => span)
  expect(spans.length).toBeGreaterThan(20)
  const isKnown = (span: string) => {
    let at: Command | undefined = createProgram()
    for (const word of span.split(" ")) {
      if (at === undefined || at.commands.length === 0 || !/^[a-z-]+$/.test(word)) break
      at = at.commands.find((one) => one.name() === word)
    }
    return at !== undefined
  }
  expect(spans.filter((span) => !isKnown(span))).toEqual([])
  expect(isKnown("no-such command")).toBe(false)
})

test("each line of the reference asks for its operation", async () => {
  // A plain row asks for the route that it names, and is run in `requests.test.ts`, too.
  const [by_hand, plain] = [Object.keys(BY_HAND), Object.keys(commandLines)]
  const order = [...by_hand, ...plain.filter((route) => !by_hand.includes(route))].filter(
    (route) => !(route in SAME_AS),
  )
  const left = order.slice(0, sizes.reference_commands).values()
  const wrong: string[] = []
  const lane = async () => {
    for (const route of left) {
      const line = commandLines[route] ?? ""
      const { asked, ended } = await askedBy(line)
      if (!asked.some((one) => shapeOf(route).test(one)))
        wrong.push(`${route}: ${line}: ${asked.join(", ")}: ${ended.slice(0, 300)}`)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
  expect(wrong).toEqual([])
})
