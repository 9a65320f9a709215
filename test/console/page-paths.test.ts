import { expect, test } from "bun:test"
import { findPage, isOfConsole, ownPath, PATHS, safeNext } from "../../src/console/page-paths"
import { consoleRoutes } from "../../src/pages/console-routes"

test("every page of the console has an address on the server, and every address a page", () => {
  const routes = consoleRoutes({ mode: "up" }).map(({ path }) => path)
  const shells = routes.filter((path) => path !== "/assets/{name}")
  expect(shells.toSorted()).toEqual(Object.values(PATHS).toSorted())
})

test("a path leads to its page", () => {
  expect(findPage("/")).toEqual({ name: "start", params: {} })
  expect(findPage("/sign-in")).toEqual({ name: "sign-in", params: {} })
  for (const [path, mail_id] of [
    ["/mailbox/0199-a", "0199-a"],
    ["/mailbox/0199%2Da", "0199-a"],
    ["/mailbox/100%", "100%"],
  ]) {
    expect(findPage(path ?? "")).toEqual({ name: "mail", params: { mail_id: mail_id ?? "" } })
  }
  for (const path of ["/docs", "/v1/emails", "/sign-in/x", "//", ""]) {
    expect([path, findPage(path)]).toEqual([path, undefined])
  }
})

test("after signing in, only a page of this server opens", () => {
  expect(safeNext("/parts?x=1")).toBe("/parts?x=1")
  expect(isOfConsole("/parts?x=1")).toBe(true)
  for (const page of ["/docs", "/docs/postEmails#body", "/docs/search?q=x"]) {
    expect([page, safeNext(page), isOfConsole(page)]).toEqual([page, page, false])
  }
  const others = [
    null,
    "",
    "https://evil.test/",
    "//evil.test",
    "/\\evil.test",
    "\\\\evil.test",
    "javascript:alert(1)",
    "/\t/evil.test",
    "/docsearch",
    "/docs/../v1/emails",
    "parts",
    "/..//evil.test",
    "/sign-in?next=/mailbox",
  ]
  for (const next of others) expect([next, safeNext(next)]).toEqual([next, "/"])
})

test("a path of this server stays as it is, with its query and its fragment", () => {
  for (const path of [
    "/",
    "/mailbox",
    "/mailbox/1?unread=true#text",
    "/docs/errors/not_found",
    "/?a=//b",
  ]) {
    expect(ownPath(path)).toBe(path)
  }
})

test("whatever a browser would take elsewhere leads to the start page", () => {
  const elsewhere = [
    ...["https://evil.test", "//evil.test", "///evil.test", "/\\evil.test", "\\\\evil.test"],
    ...["/\t/evil.test", "/\n/evil.test", "/\r\\evil.test", "\t//evil.test", " //evil.test"],
    ...[
      "/..//evil.test",
      "/.//evil.test",
      "/a/..//evil.test",
      "/%2e//evil.test",
      "/%2e%2e//evil.test",
    ],
    ...[
      "javascript:alert(1)",
      "data:text/html,x",
      "http:evil.test",
      "mailbox",
      "?a",
      "#a",
      "",
      null,
    ],
    undefined,
  ]
  for (const text of elsewhere) expect([text, ownPath(text)]).toEqual([text, "/"])
})
