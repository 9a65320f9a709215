import { expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Glob } from "bun"
import { root } from "../harness/migrations"

const pages = ["README.md", "CHANGELOG.md", ...new Glob("docs/**/*.md").scanSync(root)]

test("every link of the docs leads to a file, and to a heading of it where it names one", () => {
  const links = pages.flatMap(linksOf)
  expect(links.length).toBeGreaterThan(20)
  expect(links.filter(isBroken).map(({ page, target }) => `${page}: ${target}`)).toEqual([])
})

test("a link to a file or a heading that is not there is found", () => {
  const from = (target: string) => ({ page: "docs/decisions/store.md", target })
  expect(isBroken(from("../bench-log.md"))).toBe(false)
  expect(isBroken(from("../bench-log.md#no-such-heading"))).toBe(true)
  expect(isBroken(from("no-such-page.md"))).toBe(true)
})

test("the index of the decisions links every page of a subject", () => {
  const linked = linksOf("docs/decisions.md").map(({ target }) => join("docs", target))
  expect([...new Glob("docs/decisions/*.md").scanSync(root)].sort()).toEqual(
    linked.filter((path) => path.startsWith("docs/decisions/")).sort(),
  )
})

interface Link {
  page: string
  target: string
}

/** Links to files of this repository; those to the web are left out. */
function linksOf(page: string): Link[] {
  const prose = read(page).replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "")
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => ({ page, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))
}

function isBroken({ page, target }: Link): boolean {
  const [file, heading] = target.split("#")
  const path = file ? join(dirname(page), file) : page
  if (!existsSync(join(root, path))) return true
  return heading !== undefined && !anchorsOf(path).includes(heading)
}

/** Headings as GitHub names them in a link: lower case, no punctuation, a hyphen for each space. */
const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  )

const read = (page: string) => readFileSync(join(root, page), "utf8")

test("the index of decisions holds no entry itself", () => {
  expect(readFileSync(join(root, "docs/decisions.md"), "utf8")).not.toMatch(/^## /m)
})
