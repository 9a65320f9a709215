import { describe, expect, test } from "bun:test"
import { expectNoneLost, expectNoneTwice } from "./nothing-lost"
import { type Failed, isLoss, onceMore } from "./once-more"

const failed = (file: string, own: Partial<Failed<string>> = {}): Failed<string> => ({
  file: `test/mail/${file}.test.ts`,
  name: "a page shows it",
  message: "expect(received).toBe(expected)",
  group: "on SQLite",
  ...own,
})

const messageOf = (act: () => void): string => {
  try {
    act()
  } catch (error) {
    return String(error)
  }
  return ""
}

describe("a failed file", () => {
  test("is run once more for each group in which it failed, whatever of it failed", () => {
    const failures = [failed("a"), failed("a", { name: "another" }), failed("b")]
    failures.push(failed("a", { group: "on Postgres" }))
    expect(onceMore(failures)).toEqual([
      { file: "test/mail/a.test.ts", group: "on SQLite" },
      { file: "test/mail/b.test.ts", group: "on SQLite" },
      { file: "test/mail/a.test.ts", group: "on Postgres" },
    ])
  })

  test("is not run once more where more than three failed", () => {
    expect(onceMore(["a", "b", "c"].map((file) => failed(file)))).toHaveLength(3)
    expect(onceMore(["a", "b", "c", "d"].map((file) => failed(file)))).toEqual([])
  })

  test.each([
    ["what was acknowledged is not there", () => expectNoneLost(["<1@example.test>"])],
    ["what came once came again", () => expectNoneTwice(new Map([["<1@example.test>", 2]]))],
  ])("is not run once more where %s", (_, act) => {
    const loss = failed("a", { message: messageOf(act) })
    expect(isLoss(loss)).toBe(true)
    expect(onceMore([failed("a"), loss, failed("b")])).toMatchObject([
      { file: "test/mail/b.test.ts" },
    ])
  })

  test.each([
    "full to the last byte: nothing acknowledged is lost",
    "what waited is delivered, each once",
    "a caller that repeats itself sends nothing twice",
  ])("is not run once more where a test of it promises %p", (name) => {
    expect(isLoss(failed("a", { name, message: "test timed out" }))).toBe(true)
  })

  test("is not run once more where its own name says that it kills", () => {
    expect(isLoss(failed("webhooks-kill"))).toBe(true)
    expect(isLoss(failed("skills"))).toBe(false)
  })

  test("is no loss where all are there", () => {
    expect(messageOf(() => expectNoneLost([]))).toBe("")
    expect(messageOf(() => expectNoneTwice(new Map([["<1@example.test>", 1]])))).toBe("")
  })
})
