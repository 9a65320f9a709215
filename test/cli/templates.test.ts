import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

async function person() {
  const project = await service.project()
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const folder = freshHome()
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const json = async (...words: string[]) => {
    const { exit, out, err } = await belfry(words, { env })
    if (exit !== 0) throw new Error(err)
    return JSON.parse(out)
  }
  return { project, env, file, json, run: (...words: string[]) => belfry(words, { env }) }
}

test("a template is made from files, changed, published, shown and deleted by its name", async () => {
  const { file, json, run } = await person()
  const html = file("receipt.html", "<p>Hello {{name}}</p>")
  const text = file("receipt.txt", "Hello {{name}}")
  const create = ["templates", "create", "--name", "receipt", "--subject", "Receipt {{number}}"]
  const made = await json(...create, "--html-file", html, "--text-file", text, "--tag", "shop")
  expect(made).toMatchObject({
    name: "receipt",
    version: 1,
    text: "Hello {{name}}",
    tags: ["shop"],
  })
  const edited = await json("templates", "edit", "receipt", "--subject", "New", "--draft")
  expect(edited).toMatchObject({ id: made.id, version: 2, published_version: 1, subject: "New" })
  expect((await json("templates", "publish", "receipt")).published_version).toBe(2)
  const back = await json("templates", "rollback", "receipt", "--version", "1")
  expect(back).toMatchObject({ version: 3, subject: "Receipt {{number}}" })
  const versions = await json("templates", "versions", "receipt")
  expect(versions.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1])
  expect((await json("templates", "duplicate", "receipt")).name).toBe("receipt-copy")
  expect((await json("templates", "archive", "receipt-copy")).status).toBe("archived")
  expect(await json("templates", "list", "--status", "archived")).toHaveLength(1)
  expect((await json("templates", "get", made.id)).html).toBe("<p>Hello {{name}}</p>")
  expect((await run("templates", "delete", "receipt", "--yes")).exit).toBe(0)
  const gone = await run("templates", "get", "receipt")
  expect([gone.exit, JSON.parse(gone.err).error.code]).toEqual([3, "template_not_found"])
})

test("a template is rendered with variables from flags and from a file", async () => {
  const { file, json, run, project } = await person()
  const texts = { name: "receipt", subject: "{{number}}", html: "<p>{{who.name}} {{number}}</p>" }
  await project.post("/v1/templates", texts)
  const data = file("data.json", '{"who": {"name": "Ann"}, "number": 1}')
  const render = ["templates", "render", "receipt", "--vars-file", data]
  expect(await json(...render, "--var", "number=2")).toMatchObject({
    subject: "2",
    html: "<p>Ann 2</p>",
  })
  const nothing = await run("templates", "render", "receipt")
  expect(nothing.exit).toBe(7)
  expect(JSON.parse(nothing.err).error.details).toEqual({ missing: ["number", "who.name"] })
  const quiet = await run(...render, "--quiet")
  expect(quiet.out).toBe("<p>Ann 1</p>\n")
})

test("a mistake is shown with its place and a caret", async () => {
  const { file, env } = await person()
  const html = file("broken.html", "<p>\n  {{#if name}}\n</p>")
  const create = ["templates", "create", "--name", "broken", "--html-file", html, "--no-color"]
  const { exit, out } = await onTerminal(create, { env, columns: 200 })
  expect(exit).toBe(7)
  expect(out).toContain("The text ends here, but a block or an expression is still open.")
  expect(out).toContain("line 3, column 5")
  expect(out).toMatch(/<\/p>\r?\n\s+\^/)
})

test("a test of a template, and an email from it, go to one address", async () => {
  const { json, project } = await person()
  await project.post("/v1/templates", { name: "receipt", subject: "Hi {{name}}", text: "{{name}}" })
  await project.call("PATCH", "/v1/settings", { body: { default_from: "bell@example.test" } })
  const sent = await json(
    "templates",
    "test-send",
    "receipt",
    "ann@example.test",
    "--var",
    "name=Ann",
  )
  const email = (await project.get(`/v1/emails/${sent.id}`)).body.data
  expect(email).toMatchObject({ subject: "Hi Ann", template: { name: "receipt", version: 1 } })
  const send = ["emails", "send", "--to", "ann@example.test", "--template", "receipt"]
  const other = await json(...send, "--var", "name=Ben")
  expect((await project.get(`/v1/emails/${other.id}`)).body.data.subject).toBe("Hi Ben")
  const list = await json("emails", "list", "--template", "receipt")
  expect(list).toHaveLength(2)
})
