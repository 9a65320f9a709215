import { expect, test } from "bun:test"
import { ownPath } from "../../src/lib/own-path"

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
