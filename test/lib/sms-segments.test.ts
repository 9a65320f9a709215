import { expect, test } from "bun:test"
import { split } from "split-sms"
import { inspectText, smsSegments } from "../../src/lib/sms-segments"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"

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

const shape = (text: string) => {
  const { characterSet, parts } = split(text)
  return { encoding: characterSet === "GSM" ? "gsm7" : "ucs2", segments: parts.length }
}

test("the segments of made-up texts are those that another library counts", () => {
  const gsm = fc.constantFrom(..."abcXYZ 0159@£é\r\n^{}[]~\\|€")
  const other = fc.oneof(
    gsm,
    fc.constantFrom(..."яçあ’😀👍", "👩‍🚀", "🇦🇹"),
    fc.string({ unit: "binary" }),
  )
  const pieces = fc.oneof(fc.array(gsm, { maxLength: 700 }), fc.array(other, { maxLength: 400 }))
  const edges = fc.constantFrom(0, 60, 130, 150, 290)
  const texts = fc
    .tuple(edges, pieces)
    .map(([length, rest]) => ("a".repeat(length) + rest.join("")).toWellFormed())
    .filter((text) => text !== "")
  const property = fc.property(texts, (text) =>
    expect(smsSegments(text)).toEqual(shape(text) as never),
  )
  fc.assert(property, { numRuns: sizes.texts })
})

test.each(["a", "€", "я", "😀"])("%p is counted alike at every length up to ten parts", (one) => {
  for (let length = 1; one.repeat(length).length <= 1600; length++) {
    const text = one.repeat(length)
    expect(smsSegments(text)).toEqual(shape(text) as never)
  }
})

test("a text is inspected: what makes it long, and what would make it short", () => {
  expect(inspectText("😀 “Hi”")).toEqual({
    ...{ encoding: "ucs2", segments: 1, characters: 6, per_segment: 70 },
    offending: [
      { char: "😀", index: 0 },
      { char: "“", index: 2 },
      { char: "”", index: 5 },
    ],
    gsm7_suggestion: null,
  })
  expect(inspectText("a".repeat(161))).toEqual({
    ...{ encoding: "gsm7", segments: 2, characters: 161, per_segment: 153 },
    ...{ offending: [], gsm7_suggestion: null },
  })
  expect(inspectText("Hi\r\n")).toMatchObject({ segments: 1, characters: 4 })
  expect(inspectText("")).toMatchObject({ segments: 0, characters: 0, gsm7_suggestion: null })
})

test.each<[string, string | null]>([
  ["“It’s” „so“ ‚it‘ «is»", '"It\'s" "so" \'it\' "is"'],
  ["one – two — three ‐ four − 5", "one - two - three - four - 5"],
  ["wait…", "wait..."],
  ["1\u00a0000\u202f000\u3000€", "1 000 000 €"],
  ["in\u200bvi\u00adsi\u2060ble\ufeff", "invisible"],
  ["ﬁnal oﬀer", "final offer"],
  ["Ｆｕｌｌ　１２３！", "Full 123!"],
  [
    "ça coûte à Łódź, Škoda, Đorđe, İı",
    "ca coûte à Lódz, Skoda, Dorde, Ii".replace("û", "u").replace("ó", "o"),
  ],
  ["e\u0301te\u0301 q\u0303", "été q"],
  ["Tiếng Việt", "Tieng Viet"],
  ["tab\there\u2028line", "tab here\nline"],
  ["№ 5 ™ ©", "No 5 (TM) (C)"],
  ["3 × 4 → 12", "3 x 4 -> 12"],
  ["10² is more than 1½", null],
  ["a ≠ b", null],
  ["grüße, я", null],
  ["20 °C", null],
  ["❤️", null],
  ["…".repeat(70), null],
  ["\u200b\u00a0", null], // nothing would be left of it
  ["plain", null],
])("%p in GSM-7 is %p", (text, suggestion) => {
  expect(inspectText(text).gsm7_suggestion).toBe(suggestion)
})

test("a text that is far too long names its first hundred characters, and all of a suggestion", () => {
  const { offending, characters, gsm7_suggestion } = inspectText("“”".repeat(100_000))
  expect({ named: offending.length, characters }).toEqual({ named: 100, characters: 200_000 })
  expect(gsm7_suggestion).toBe('"'.repeat(200_000))
})
