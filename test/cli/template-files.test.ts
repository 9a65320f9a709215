import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { withNeighbours } from "../../cli/commands/template-files"
import { filesOf, inOrder, readTemplates, writeTemplate } from "../../cli/lib/template-folder"
import { program } from "../harness/program"
import { environment, freshHome, onTerminal } from "./belfry"
import { box } from "./box"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

const server = await box()
afterAll(() => server[Symbol.asyncDispose]())

const env = () => ({ BELFRY_URL: server.url, BELFRY_API_KEY: server.api_key })
const ask = (...words: string[]) => belfry(["templates", ...words], { env: env() })

/** Writes files below a new folder: `{"welcome/email.html": "…"}`. Objects become JSON. */
function folderOf(files: Record<string, string | object>): string {
  const folder = freshHome()
  put(folder, files)
  return folder
}

function put(folder: string, files: Record<string, string | object>) {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true })
    writeFileSync(
      join(folder, path),
      typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`,
    )
  }
}

const rows = (out: string) => JSON.parse(out) as Record<string, unknown>[]

const LETTER = {
  "letter/template.json": { subject: "Hi {{name}}", layout: "frame", tags: ["b", "a"] },
  "letter/email.html": "<p>Hi {{name}}</p>\n",
  "letter/email.de.html": "<p>Hallo {{name}}</p>\n",
  "letter/example.json": { name: "Ann" },
  "frame/template.json": { description: "Around every mail" },
  "frame/email.html": '<html lang="en"><body>{{{content}}}</body></html>\n',
}

describe("templates in files", () => {
  test("are created with their layouts first, are then unchanged, and are updated alone", async () => {
    const folder = folderOf(LETTER)
    const first = await ask("push", folder)
    expect(first.exit).toBe(0)
    expect(rows(first.out).map(({ name, action }) => [name, action])).toEqual([
      ["frame", "created"],
      ["letter", "created"],
    ])
    const again = rows((await ask("push", folder)).out)
    expect(again.map(({ action }) => action)).toEqual(["unchanged", "unchanged"])
    put(folder, { "letter/email.html": "<p>Dear {{name}}</p>\n" })
    const third = rows((await ask("push", folder)).out)
    expect(third.map(({ action, version }) => [action, version])).toEqual([
      ["unchanged", 1],
      ["updated", 2],
    ])
  })

  test("come back from the server as they were pushed", async () => {
    const folder = folderOf(LETTER)
    await ask("push", folder)
    const copy = freshHome()
    const pulled = await ask("pull", copy, "letter", "frame")
    expect(pulled.exit).toBe(0)
    const [, letter] = readTemplates(copy)
    const [, own] = readTemplates(folder)
    expect(letter && filesOf(letter)).toEqual(own && filesOf(own))
    expect(rows((await ask("pull", copy, "letter")).out)[0]?.action).toBe("unchanged")
    expect((await ask("diff", copy, "--only", "letter")).exit).toBe(0)
  })

  test("differ in lines that are shown, with exit 1", async () => {
    const folder = folderOf(LETTER)
    await ask("push", folder)
    put(folder, { "letter/email.html": "<p>Other</p>\n" })
    const { exit, out } = await ask("diff", folder, "--only", "letter")
    expect([exit, rows(out)[0]?.state]).toEqual([1, "different"])
    expect(rows(out)[0]?.diff).toContain("-<p>Hi {{name}}</p>\n+<p>Other</p>\n")
  })

  test("are checked without being changed: a mistake is told with its line, and exit 7", async () => {
    const fresh = { ...LETTER, "letter/template.json": { subject: "x", layout: "newframe" } }
    const moved = { ...fresh, "newframe/template.json": {}, "newframe/email.html": "{{{content}}}" }
    expect((await ask("check", folderOf(moved))).exit).toBe(0) // its layout stands on no server
    const folder = folderOf(LETTER)
    await ask("push", folder)
    expect((await ask("check", folder)).exit).toBe(0)
    put(folder, { "letter/email.html": "<p>\n{{#if name}}</p>\n" })
    const { exit, out } = await ask("check", folder)
    expect([exit, rows(out).map(({ result }) => result)]).toEqual([7, ["ok", "refused"]])
    expect(String(rows(out)[1]?.error)).toMatch(/line 2|not closed|if/i)
    expect(rows((await ask("diff", folder, "--only", "letter")).out)[0]?.state).toBe("different")
  })

  test("are checked by a server that allows nothing more only for so long, and a check begins anew", async () => {
    using api = new FakeApi()
    api.data("GET /v1/templates", [])
    const error = { code: "rate_limited", message: "Wait.", details: { retry_after: 0 } }
    api.answer("POST /v1/templates/render", { status: 429, body: { error, meta: {} } })
    const folder = folderOf({ "a/template.json": { subject: "x" }, "a/email.html": "x\n" })
    const words = ["templates", "check", folder, "--url", api.url, "--api-key", KEY]
    const { exit, out } = await onTerminal(words)
    expect([exit, out]).toEqual([6, expect.stringContaining("a check begins anew")])
    expect(api.seen.filter(({ method }) => method === "POST")).toHaveLength(31)
  })

  test("of which one is refused are pushed but for that one, with exit 8", async () => {
    const folder = folderOf({
      "good/template.json": { subject: "x" },
      "good/email.html": "x\n",
      "bad/template.json": { subject: "x" },
      "bad/email.html": "{{#each}}\n",
    })
    const { exit, out } = await ask("push", folder)
    expect([exit, rows(out).map(({ action }) => action)]).toEqual([8, ["refused", "created"]])
  })

  test("need an existing layout", async () => {
    const folder = folderOf({ "alone/template.json": { subject: "x", layout: "nowhere" } })
    const { exit, out } = await ask("push", folder)
    expect([exit, rows(out)[0]?.error]).toEqual([8, "There is no layout nowhere."])
  })
})

describe("a folder", () => {
  test.each<[string, Record<string, string | object>, number, string]>([
    ["without templates", { "readme.txt": "x" }, 66, "There is no template in"],
    ["with broken JSON", { "a/template.json": "{" }, 7, "is not JSON"],
    ["with a list", { "a/template.json": "[]" }, 7, "must be a JSON object"],
    ["with an unknown field", { "a/template.json": { sbject: "x" } }, 7, "unknown field sbject"],
    ["with a bad name", { "A b/template.json": {} }, 7, "is no name of a template"],
    [
      "with a bad language",
      { "a/template.json": {}, "a/email.d-.html": "x" },
      7,
      "names no language",
    ],
  ])("%s is refused, and nothing is sent", async (_, files, exit, message) => {
    const ran = await ask("push", folderOf(files))
    expect(ran.exit).toBe(exit)
    expect(ran.err).toContain(message)
  })

  test("that does not exist is told with exit 66", async () => {
    const ran = await ask("push", join(freshHome(), "none"))
    expect([ran.exit, ran.err.includes("none")]).toEqual([66, true])
  })

  test("gives templates behind their layouts and partials, a circle included", () => {
    const folder = folderOf({
      "a/template.json": { layout: "z" },
      "a/email.html": "{{> m}}",
      "m/template.json": {},
      "m/email.html": "{{> a}}",
      "z/template.json": {},
    })
    expect(inOrder(readTemplates(folder)).map(({ name }) => name)).toEqual(["z", "m", "a"])
  })

  test("writes its own layouts and partials into a template, five deep, a circle included", () => {
    const all = readTemplates(
      folderOf({
        "a/template.json": { layout: "l" },
        "a/email.html": "A {{> p}} {{> other}}\n",
        "l/template.json": { layout: "outer" },
        "l/email.html": "[{{{ content }}}]\n",
        "outer/template.json": {},
        "outer/email.html": "<{{{content}}}>\n",
        "p/template.json": {},
        "p/email.html": "P{{> p}}\n",
      }),
    )
    const [a] = all
    const whole = a && withNeighbours(a, all).template
    expect(whole?.bodies["email.html"]).toBe("<[A PPPPP{{> p}} {{> other}}]>")
    expect(whole?.settings.layout).toBeUndefined()
  })

  test("gets no file outside of it, whatever a server calls its templates and languages", () => {
    const folder = folderOf(LETTER)
    const [, letter] = readTemplates(folder)
    if (!letter) throw new Error("the template is missing")
    for (const wrong of ["../out", "a/b", "..", ""]) {
      expect(() => writeTemplate(folder, { ...letter, name: wrong })).toThrow("is no name")
      const settings = { ...letter.settings, locales: { [wrong]: {} } }
      expect(() => writeTemplate(folder, { ...letter, settings })).toThrow("names no language")
      const bodies = { [`email.${wrong}.html`]: "x" }
      expect(() => writeTemplate(folder, { ...letter, bodies })).toThrow("names no language")
    }
    expect(existsSync(join(folder, "..", "out"))).toBe(false)
  })

  test("loses the body of a language that the server has no more", async () => {
    const folder = folderOf(LETTER)
    await ask("push", folder)
    rmSync(join(folder, "letter/email.de.html"))
    await ask("push", folder)
    put(folder, { "letter/email.de.html": "old\n" })
    expect((await ask("pull", folder, "letter")).exit).toBe(0)
    expect(existsSync(join(folder, "letter/email.de.html"))).toBe(false)
    expect(readFileSync(join(folder, "letter/example.json"), "utf8")).toContain("Ann")
  })
})

/** A command that goes on, and the lines of its output. */
function started(words: string[]) {
  const child = Bun.spawn([...program, ...words], {
    env: environment(env()),
    stdout: "pipe",
    stderr: "pipe",
  })
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  const line = async () => {
    while (!rest.includes("\n")) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`it ended: ${rest}`)
      rest += value
    }
    const [first = "", ...others] = rest.split("\n")
    rest = others.join("\n")
    return first
  }
  const stop = async () => {
    child.kill("SIGINT")
    return await child.exited
  }
  return { line, stop, [Symbol.asyncDispose]: async () => void (await stop()) }
}

test("push --watch pushes each change, tells a mistake and goes on after it", async () => {
  const folder = folderOf({
    "watched/template.json": { subject: "x" },
    "watched/email.html": "one\n",
  })
  await using watch = started(["templates", "push", folder, "--watch", "--ndjson"])
  expect(JSON.parse(await watch.line())).toMatchObject({ action: "created" })
  put(folder, { "watched/email.html": "{{#if}}\n" })
  expect(JSON.parse(await watch.line())).toMatchObject({ action: "refused" })
  put(folder, { "watched/email.html": "two\n" })
  expect(JSON.parse(await watch.line())).toMatchObject({ action: "updated", version: 2 })
  expect(await watch.stop()).toBe(130)
})
