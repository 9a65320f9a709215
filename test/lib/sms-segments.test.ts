import { expect, test } from "bun:test"
import { smsSegments } from "../../src/lib/sms-segments"

test.each<[string, string, "gsm7" | "ucs2", number]>([
  ["no text", "", "gsm7", 0],
  ["160 characters of GSM", "a".repeat(160), "gsm7", 1],
  ["161 of them", "a".repeat(161), "gsm7", 2],
  ["306, which fill two parts", "a".repeat(306), "gsm7", 2],
  ["307", "a".repeat(307), "gsm7", 3],
  ["80 euros, each with an escape", "€".repeat(80), "gsm7", 1],
  ["81 euros", "€".repeat(81), "gsm7", 2],
  ["an escape that would be divided", `${"a".repeat(152)}€${"a".repeat(152)}`, "gsm7", 3],
  ["the whole alphabet", "@£$¥èéùìòÇ\nØøÅåΔ_ΦΓΛΩΠΨΣΘΞ^{}\\[~]|€ÆæßÉ", "gsm7", 1],
  ["70 of another script", "я".repeat(70), "ucs2", 1],
  ["71 of them", "я".repeat(71), "ucs2", 2],
  ["35 faces of two units", "😀".repeat(35), "ucs2", 1],
  ["36 faces, which do not fill a part evenly", "😀".repeat(36), "ucs2", 2],
  ["one letter outside the alphabet", `${"a".repeat(69)}ç`, "ucs2", 1],
])("%s", (_, text, encoding, segments) => {
  expect(smsSegments(text)).toEqual({ encoding, segments })
})
