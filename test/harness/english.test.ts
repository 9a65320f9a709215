import { expect, test } from "bun:test"
import {
  commentsOf,
  complaintsOf,
  literalsOf,
  markupTextsOf,
  paragraphsOf,
  sentencesOf,
} from "./english"

test("a hidden subject and a long sentence are found", () => {
  expect(complaintsOf("Who finds no room waits.")).toHaveLength(1)
  expect(complaintsOf("Give it to whoever asks.")).toHaveLength(1)
  expect(complaintsOf("They wait until there is room.")).toEqual([])
  expect(complaintsOf("belfry whoami shows the person.")).toEqual([])
  expect(complaintsOf(Array(26).fill("word").join(" "))).toEqual(["26 words, at most 25"])
  expect(complaintsOf(Array(25).fill("word").join(" "))).toEqual([])
})

test.each([
  "The address of the server is told at the start.",
  "The filter stands in the address.",
  "A failed message goes to the next provider.",
  "A removal takes the memberships along.",
  "The mailbox does not count.",
  "Only the newest one counts.",
  "An emoji counts as one.",
  "So is one more category.",
  "Of several filters at most 100.",
])("a sentence without an actor is found: %s", (sentence) => {
  expect(complaintsOf(sentence)).toHaveLength(1)
})

test.each([
  "Belfry counts an emoji as one.",
  "The server does not count such mail.",
  "The list walks along an index.",
  "The answer has its counts.",
  "A stand-in replaces the name.",
  "Give the same command again to go on.",
])("a sentence with its actor passes: %s", (sentence) => {
  expect(complaintsOf(sentence)).toEqual([])
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

test("texts between elements are texts, and the code around them is not", () => {
  const code =
    "const a = (n: number) => n // <p>no</p>\n<p>\n  A mail goes out {n}\n  of <b>three</b></p>"
  expect(markupTextsOf(code).map(({ line, text }) => [line, text.trim()])).toEqual([
    [2, "A mail goes out"],
    [3, "of"],
    [4, "three"],
  ])
})
