import { describe, expect, test } from "bun:test"
import { spamContentFindings } from "../../src/lib/spam-content"

const rulesOf = (subject: string, text: string, html: string | null = null) =>
  spamContentFindings({ subject, text, html }).map(({ rule }) => rule)

describe("content that filters count", () => {
  test.each([
    ["Your receipt", "Thank you for your order, Ann.", []],
    ["WIN A PRIZE TODAY", "Hello Ann", ["capitals"]],
    ["OK", "Hello Ann", []],
    ["Great news!!!", "Hello Ann", ["exclamation"]],
    ["Re: your order", "Hello Ann", ["false_reply"]],
    ["Offer", "Cheap viagra without prescription", ["pharmacy"]],
    ["Offer", "Act now, this is your last chance", ["urgency"]],
    ["Offer", "Dear customer, hello", ["nameless"]],
    ["重要なお知らせ", "お客様各位", ["nameless"]],
  ])("%j with %j has the findings %j", (subject, text, rules) => {
    expect(rulesOf(subject, text)).toEqual(rules)
  })

  test("is a mail of images with almost no text, also where the text is made from html", () => {
    const html = '<img src="a.png" alt="Sale">'
    expect(spamContentFindings({ subject: "Sale", html, text: null })).toEqual([
      {
        rule: "image_only",
        detail: "The mail has one image and almost no text. Filters cannot read it; add text.",
      },
    ])
    expect(rulesOf("Sale", "word ".repeat(30), html)).toEqual([])
  })

  test("names the word that it found, and says the same each time", () => {
    const look = () => spamContentFindings({ subject: "x", text: "Casino and casino", html: null })
    expect(look()).toEqual(look())
    expect(look()[0]?.detail).toContain('"casino"')
  })
})
