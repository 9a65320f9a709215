import { expect, test } from "bun:test"
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { readTemplates, writeTemplate } from "../../cli/lib/template-folder"
import { sources } from "../harness/sources"
import { freshHome } from "./belfry"

/** A folder with one template, and a file beside it that nobody meant to publish. */
function templates() {
  const home = freshHome()
  const secret = join(home, "secret")
  writeFileSync(secret, "SECRET")
  const place = join(home, "templates", "letter")
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, "template.json"), '{"subject": "Hi"}\n')
  writeFileSync(join(place, "email.html"), "<p>Hi</p>\n")
  writeFileSync(join(place, "example.json"), "{}\n")
  return { home, secret, place, folder: join(home, "templates") }
}

const fifo = (path: string) => Bun.spawnSync(["mkfifo", path])
const FILES = ["template.json", "example.json", "email.html", "email.de.txt"]

test.each(FILES)(
  "%s that is no file of the folder is refused and named, and never waited for",
  (file) => {
    const makes: [string, (path: string, secret: string) => void][] = [
      ["a symbolic link", (path, secret) => symlinkSync(secret, path)],
      ["a symbolic link", (path) => symlinkSync("nowhere", path)],
      ["a pipe, a socket or a device", fifo],
      ["a folder", (path) => mkdirSync(path)],
    ]
    for (const [said, make] of makes) {
      const { folder, place, secret } = templates()
      rmSync(join(place, file), { force: true })
      make(join(place, file), secret)
      const message = `${join(place, file)} is ${said}, not a file.`
      expect(() => readTemplates(folder)).toThrow(expect.objectContaining({ message, exit: 66 }))
    }
  },
)

test("a link to the folder of a template is refused, and a link to anything else is not read", () => {
  const { home, folder, place, secret } = templates()
  symlinkSync(secret, join(folder, "README"))
  fifo(join(folder, "pipe"))
  expect(readTemplates(folder)).toHaveLength(1)
  renameSync(place, join(home, "elsewhere"))
  symlinkSync(join(home, "elsewhere"), place)
  expect(() => readTemplates(folder)).toThrow(`${place} is a symbolic link, not a folder.`)
  symlinkSync(folder, join(home, "chosen"))
  rmSync(place)
  renameSync(join(home, "elsewhere"), place)
  expect(readTemplates(join(home, "chosen"))).toHaveLength(1) // the user named this link
})

test("a file that is too large is not read", () => {
  const { folder, place } = templates()
  truncateSync(join(place, "email.html"), 2 ** 30)
  expect(() => readTemplates(folder)).toThrow(`${join(place, "email.html")} is larger than`)
})

test("nothing is written through a link", () => {
  for (const name of ["letter", "letter/email.html", "letter/template.json"]) {
    const { home, folder, place, secret } = templates()
    const [letter] = readTemplates(folder)
    if (!letter) throw new Error("no template")
    const path = join(folder, name)
    const target = name === "letter" ? join(home, "elsewhere") : secret
    if (name === "letter") renameSync(place, target)
    else rmSync(path)
    symlinkSync(target, path)
    expect(() =>
      writeTemplate(folder, { ...letter, bodies: { "email.html": "<p>New</p>" } }),
    ).toThrow(`${path} is a symbolic link`)
    expect(readFileSync(secret, "utf8")).toBe("SECRET")
    if (name === "letter")
      expect(readFileSync(join(target, "email.html"), "utf8")).toBe("<p>Hi</p>\n")
  }
})

test("names of a server never lead out of the folder", () => {
  const { home, folder } = templates()
  const [letter] = readTemplates(folder)
  if (!letter) throw new Error("no template")
  const hostile = [
    { ...letter, name: "../out" },
    { ...letter, name: "a/b" },
    { ...letter, settings: { locales: { "/../../out": {} } } },
    { ...letter, bodies: { "email./../../out.html": "x" } },
  ]
  for (const one of hostile) expect(() => writeTemplate(folder, one)).toThrow()
  expect(existsSync(join(home, "out"))).toBe(false)
})

test("commands read folders by these functions only", () => {
  const wrong = sources.filter(
    ({ path, text }) =>
      /^cli\/(?!lib\/folder-files\.ts|local\/server-process\.ts)/.test(path) && // that one reads /proc
      /\b(readdir|opendir)(Sync)?\b|\bGlob\b/.test(text),
  )
  expect(wrong.map(({ path }) => path)).toEqual([])
})
