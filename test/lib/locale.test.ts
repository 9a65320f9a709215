import { expect, test } from "bun:test"
import { isLocale, isTimeZone, preferredLanguage } from "../../src/lib/locale"

test("languages are those of BCP 47", () => {
  for (const good of ["en", "de-AT", "zh-Hant-TW", "pt-br"]) expect(isLocale(good)).toBe(true)
  for (const bad of ["", "e", "en_US", "not a language"]) expect(isLocale(bad)).toBe(false)
})

test("time zones have names", () => {
  for (const good of ["UTC", "Europe/Vienna", "America/New_York"]) {
    expect(isTimeZone(good)).toBe(true)
  }
  for (const bad of ["", "+02:00", "Mars/Olympus", "Europe"]) expect(isTimeZone(bad)).toBe(false)
})

test.each([
  ["de", "de"],
  ["de-AT", "de"],
  ["DE-at;q=0.4", "de"],
  ["ja, fr;q=0.3, de;q=0.8", "de"],
  ["fr;q=0.5,de;q=0.5", "fr"],
  ["en;q=0,de;q=0.1", "de"],
  ["*", undefined],
  ["", undefined],
  ["deutsch", undefined],
  ["de;q=nothing", undefined],
  [";q=1,,-", undefined],
  [`${"ja,".repeat(60)}de`, undefined],
])("of %j it is %p", (header, language) => {
  expect(preferredLanguage(header, ["en", "de", "fr"])).toBe(language as undefined)
})
