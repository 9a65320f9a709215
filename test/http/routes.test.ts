import { expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type AppParts, routeTable } from "../../src/app"
import { RESERVED_NAMES } from "../../src/lib/reserved-names"
import { NOBODY } from "../harness/mail"
import { root } from "../harness/migrations"
import { testService } from "../harness/service"

/** The contract's table, and the rows of it that are not built yet: a list that only shrinks. */
const CONTRACT = join(root, "test/contract/routes.tsv")
const NOT_BUILT = join(root, "test/contract/not-built.txt")

/** Where the contract itself lies beside the repository, the copy must be its equal. */
const ORIGINAL = join(root, "../shared/contract/routes.tsv")

interface Row {
  name: string
  callers: string
  scope: string
  status: string
}

const contract = linesOf(CONTRACT).map((line): Row => {
  const [method = "", path = "", callers = "", scope = "", status = ""] = line.split("\t")
  return { name: nameOf(method, path), callers, scope, status }
})

const table = routeTable({} as AppParts)

/** Most pages for people are no part of the contract's interface, and neither is their session. */
const pages = table.filter(({ page, own_page, method, path }) => {
  const is_in_contract = contract.some(({ name }) => name === nameOf(method, path))
  return (page !== undefined || own_page) && !is_in_contract
})

const built = table
  .filter((row) => !pages.includes(row))
  .map(
    ({ method, path, callers, scope, status }): Row => ({
      name: nameOf(method, path),
      callers: callers.join(","),
      scope,
      status: status.join("|"),
    }),
  )

const absent = linesOf(NOT_BUILT).map((line) => {
  const [method = "", path = ""] = line.split(" ")
  return nameOf(method, path)
})

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8").split("\n").filter(Boolean)
}

/** What a server says where it has no route at all; of a thing that is missing it speaks otherwise. */
const NO_ROUTE = /There is no path \/|does not accept [A-Z]+\. It accepts/

/** Parameters are places, whatever they are called. */
function nameOf(method: string, path: string): string {
  return `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`
}

/** Until `/v1/mailbox/chaos` is built, `/v1/mailbox/{}` answers there: it looks for a mail of that id. */
function answersFor(other: string, name: string): boolean {
  return new RegExp(`^${RegExp.escape(other).replaceAll("\\{\\}", "[^/]+")}$`).test(name)
}

const names = (rows: Row[]) => rows.map(({ name }) => name)

test("every row of the contract that is not listed as absent exists as it is written there", () => {
  const wanted = contract.filter(({ name }) => !absent.includes(name))
  const found = wanted.map(({ name }) => built.find((row) => row.name === name))
  expect(found).toEqual(wanted)
})

test("a server answers on its socket what is built, and says of the rest that there is no such thing", async () => {
  await using service = await testService()
  const { url } = service.listen()
  const answers = await Promise.all(
    linesOf(CONTRACT).map(async (line) => {
      const [method = "", path = ""] = line.split("\t")
      const answer = await fetch(`${url}${path.replaceAll(/\{\w+\}/g, NOBODY)}`, { method })
      const is_absent = answer.status === 404 && NO_ROUTE.test(await answer.text())
      return { name: nameOf(method, path), is_absent }
    }),
  )
  expect(answers).toHaveLength(contract.length)
  const said = answers.filter(({ is_absent }) => is_absent).map(({ name }) => name)
  const seen = absent.filter((name) => !names(built).some((other) => answersFor(other, name)))
  expect(said.toSorted()).toEqual(seen.toSorted())
})

test("a row that exists is not listed as absent any more", () => {
  expect(absent.filter((name) => names(built).includes(name))).toEqual([])
})

test("what is listed as absent is in the contract, once", () => {
  expect(absent.filter((name) => !names(contract).includes(name))).toEqual([])
  expect(absent).toEqual([...new Set(absent)])
})

test("nothing exists that the contract does not know", () => {
  expect(names(built).filter((name) => !names(contract).includes(name))).toEqual([])
  expect(names(built)).toEqual([...new Set(names(built))])
})

test.skipIf(!existsSync(ORIGINAL))("the copy of the contract's table is its equal", () => {
  expect(readFileSync(CONTRACT, "utf8")).toBe(readFileSync(ORIGINAL, "utf8"))
})

const CREDENTIAL = /token|secret|code|password|key$/

/** Keys that are names and no credentials. */
const NAMES = ["topic_key", "action_key"]

test("every parameter that is a credential is declared as one", () => {
  const declared = table.flatMap(({ path, query, credentials = [] }) => {
    const in_path = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
    const all = [...in_path, ...Object.keys(query?.properties ?? {})]
    const found = all.filter((name) => CREDENTIAL.test(name) && !NAMES.includes(name))
    return found.map((name) => [name, credentials.includes(name)])
  })
  expect(declared.length).toBeGreaterThan(4)
  expect(declared.filter(([, is_declared]) => !is_declared)).toEqual([])
})

test("the pages for people are these, and the forms are behind the limits of an entrance", () => {
  expect([...new Set(pages.map(({ path }) => path))]).toEqual([
    "/mailbox/html/{token}",
    "/docs/",
    "/docs/search",
    "/docs/search-index",
    "/docs/errors",
    "/docs/{name}",
    "/docs/guides/{name}",
    "/docs/errors/{name}",
    "/",
    "/mailbox",
    "/mailbox/{mail_id}",
    "/sign-in",
    "/parts",
    "/assets/{name}",
    "/device",
    "/invitation/{token}",
    "/password-reset/{token}",
    "/session",
    "/session/mfa",
    "/session/link",
    "/session/token",
  ])
  const forms = pages.filter(({ method }) => method === "POST").map(({ path }) => path)
  const no_entrance = ["POST /session/token", "DELETE /session"] // a cookie of 256 bits is no guess
  const behind = pages.filter(({ method, path }) => {
    return forms.includes(path) && !no_entrance.includes(`${method} ${path}`)
  })
  expect(behind.length).toBeGreaterThan(5)
  expect(behind.every(({ per_minute }) => per_minute === 60)).toBe(true)
})

test("two paths that one request can mean are told apart by a reserved name", () => {
  const methods = Map.groupBy(table, ({ path }) => path)
  const paths = [...methods.keys()].map((path) => path.split("/"))
  const shareMethod = (one: string, other: string) => {
    const theirs = methods.get(other)?.map(({ method }) => method)
    return methods.get(one)?.some(({ method }) => theirs?.includes(method)) ?? false
  }
  const isParameter = (segment = "") => segment.startsWith("{")
  const doubtful = paths.flatMap((one, at) =>
    paths.slice(at + 1).flatMap((other) => {
      const pairs = one.map((segment, place) => [segment, other[place] ?? ""] as const)
      const meets = pairs.every(([a, b]) => a === b || isParameter(a) || isParameter(b))
      const mine = pairs.filter(([a, b]) => !isParameter(a) && isParameter(b)).map(([a]) => a)
      const theirs = pairs.filter(([a, b]) => isParameter(a) && !isParameter(b)).map(([, b]) => b)
      const is_doubtful = one.length === other.length && meets && mine.length * theirs.length > 0
      const [path, second] = [one.join("/"), other.join("/")]
      return is_doubtful && shareMethod(path, second) ? [[path, second, ...mine, ...theirs]] : []
    }),
  )
  expect(doubtful.length).toBeGreaterThan(0)
  const open = doubtful.filter(([, , ...words]) => !words.some((word) => RESERVED_NAMES.has(word)))
  expect(open).toEqual([])
})
