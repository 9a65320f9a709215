import { describe, expect, test } from "bun:test"
import { INBOX_WORDS, wordsFor } from "../../src/component/inbox-words"
import { safeLink } from "../../src/component/safe-link"
import { snoozeEnds, timeAgo } from "../../src/component/time-words"
import { LANGUAGES } from "../../src/pages/unsubscribe-words"
import { INJECTIONS } from "../fixtures/hostile/injections"

/** Every text by its path; those that take a value are given `x`. */
const textsOf = (words: object, path = ""): [string, string][] =>
  Object.entries(words).flatMap(([key, value]) => {
    const name = `${path}${key}`
    if (typeof value === "object") return textsOf(value, `${name}.`)
    return [[name, typeof value === "function" ? value("x") : value] as [string, string]]
  })

describe("words", () => {
  test("the inbox speaks the languages of the other pages for recipients", () => {
    expect(Object.keys(INBOX_WORDS)).toEqual(LANGUAGES)
  })

  /** Words that two languages share. */
  const SHARED = /^(direction|channels\.(push|sms)|title|bell|priorities\.(urgent|high))$/

  test("each language has its own text for all that English says, with the value in it", () => {
    const english = textsOf(INBOX_WORDS.en)
    for (const [language, words] of Object.entries(INBOX_WORDS)) {
      const texts = textsOf(words)
      expect(texts.map(([name]) => name)).toEqual(english.map(([name]) => name))
      for (const [at, [name, text]] of texts.entries()) {
        const same = english[at]?.[1] ?? ""
        expect([language, name, text]).toEqual([language, name, expect.stringMatching(/\S/)])
        expect([name, /\bx\b/.test(text)]).toEqual([name, /\bx\b/.test(same)])
        if (language !== "en" && !SHARED.test(name))
          expect([language, name, text]).not.toEqual([language, name, same])
      }
    }
  })

  test("the first language that there is decides, and its region holds for dates", () => {
    const chosen = (...tags: (string | null)[]) => wordsFor(tags).tag
    expect(chosen("de-CH", "fr")).toBe("de-CH")
    expect(chosen(null, "", "pt-BR", "ar")).toBe("ar")
    expect(chosen("it")).toBe("en")
    expect(chosen("de_no tag", "es")).toBe("es")
    expect(chosen("constructor", "FR")).toBe("FR")
    expect(wordsFor(["ar"]).words.direction).toBe("rtl")
  })
})

describe("times", () => {
  const NOW = Date.parse("2026-11-26T12:00:00Z") // a Thursday
  const MINUTE = 60_000

  test("say how long ago something was, and the date from a week on", () => {
    const passed = (minutes: number, tag = "en") => timeAgo(NOW - minutes * MINUTE, NOW, tag)
    expect(passed(0)).toBe("now")
    expect(passed(-5)).toBe("now")
    expect(passed(59)).toBe("59 min. ago")
    expect(passed(60)).toBe("1 hr. ago")
    expect(passed(24 * 60)).toBe("yesterday")
    expect(passed(6 * 24 * 60)).toBe("6 days ago")
    expect(passed(7 * 24 * 60)).toBe("Nov 19, 2026")
    expect(passed(59, "de")).toBe("vor 59 Min.")
  })

  test("a snooze ends in an hour, tomorrow morning or on Monday morning", () => {
    for (let day = 0; day < 7; day++) {
      const now = NOW + day * 24 * 60 * MINUTE
      const { hour, day: tomorrow, week } = snoozeEnds(now)
      expect(hour - now).toBe(60 * MINUTE)
      expect([new Date(tomorrow).getHours(), new Date(week).getHours()]).toEqual([9, 9])
      expect(new Date(tomorrow).getDay()).toBe((new Date(now).getDay() + 1) % 7)
      expect(new Date(week).getDay()).toBe(1)
      expect(week).toBeGreaterThan(now)
      expect(week - now).toBeLessThanOrEqual(7 * 24 * 60 * MINUTE)
    }
  })
})

describe("links", () => {
  test.each([
    "https://example.test/a?b#c",
    "http://example.test",
    "HTTPS://example.test/a b",
    "/orders/1",
    "/",
    "/?next=//x",
  ])("%p leads somewhere", (text) => {
    expect(safeLink(text)).toBe(text)
  })

  test.each([
    ...["//evil.test", "/\\evil.test", "/\t/evil.test", "\\\\evil.test", "https:evil.test"],
    ...["javascript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "JaVaScRiPt://x"],
    ...["data:text/html,x", "blob:https://a/b", "vbscript:x", "file:///etc", "mailto:a@b.test"],
    ...["orders/1", "?a", "#a", "https://", "https://[x", "", null, undefined],
  ])("%p is no link", (text) => {
    expect(safeLink(text)).toBeUndefined()
  })

  test("no text that would run as a script is one", () => {
    const risky = INJECTIONS.map((text) => safeLink(text)).filter((link) => link !== undefined)
    expect(risky.filter((link) => !/^(https?:\/)?\//i.test(link))).toEqual([])
  })
})
