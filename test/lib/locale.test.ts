import { expect, test } from "bun:test"
import { isLocale, isTimeZone } from "../../src/lib/locale"

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
