import { expect, test } from "bun:test"
import { commentsOf, complaintsOf, literalsOf, paragraphsOf, sentencesOf } from "./english"

test("a hidden subject and a long sentence are found", () => {
  expect(complaintsOf("Who finds no room waits.")).toHaveLength(1)
  expect(complaintsOf("Give it to whoever asks.")).toHaveLength(1)
  expect(complaintsOf("They wait until there is room.")).toEqual([])
  expect(complaintsOf("belfry whoami shows the person.")).toEqual([])
  expect(complaintsOf(Array(26).fill("word").join(" "))).toEqual(["26 words, at most 25"])
  expect(complaintsOf(Array(25).fill("word").join(" "))).toEqual([])
})

test("a text is taken apart at its full stops", () => {
  expect(sentencesOf('One. Two (with "three".) Four: 1.5 s\n\nFive')).toEqual([
    "One.",
    'Two (with "three".)',
    "Four: 1.5 s",
    "Five",
  ])
})

test("literals of code are texts, comments and other code are not", () => {
  const inner = "$" + "{b ? `x` : 1}"
  const code = `const a = "one" + // "no"\n  \`two ${inner} three\`\n/* "no" */ f(/"no"/, 'four')`
  expect(literalsOf(code).map(({ text }) => text)).toEqual(["onetwo X three", "four"])
})

test("blocks of code are no prose, cells and items are", () => {
  const page = "# A\ntext\nmore\n\n```sh\nwho\n```\n| a | b |\n- item\n  goes on"
  expect(
    paragraphsOf("x.md", page)
      .map(({ text }) => text.trim())
      .filter(Boolean),
  ).toEqual(["A", "text more", "a", "b", "item   goes on"])
})

test("comments are texts, and code within them is not", () => {
  const code = "/** Calls `who`. */\nconst a = '// no' // yes\n"
  expect(commentsOf(code).map(({ line, text }) => [line, text])).toEqual([
    [1, "/** Calls . */"],
    [2, "// yes"],
  ])
})
