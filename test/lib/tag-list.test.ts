import { expect, test } from "bun:test"
import { parseTags } from "../../src/lib/tag-list"

const tagsOf = (text: string) => [...parseTags(text).tags]

test("tags come in their order, without the spaces around them, the first of a name", () => {
  const tags = [
    ["v", "DKIM1"],
    ["k", "rsa"],
    ["p", "A B"],
  ]
  expect(tagsOf(" v = DKIM1 ;k=rsa; p=A B; k=x;")).toEqual(tags as [string, string][])
  expect(tagsOf("p=")).toEqual([["p", ""]])
})

test("what is none is told, and so is an empty part between others", () => {
  expect(parseTags("v=DKIM1; hello; p=x")).toMatchObject({ strange: ["hello"], has_empty: false })
  expect(parseTags("v=DKIM1;; p=x;")).toMatchObject({ strange: [], has_empty: true })
})
