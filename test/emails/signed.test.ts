import { describe, expect, test } from "bun:test"
import { composeMail, signed } from "../../src/emails/compose-task"
import { recipeIn, rowOfRecipe } from "../../src/emails/recipe"
import { isClean } from "../../src/lib/mail-text"
import { missing } from "../harness/peers"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { attachable, MAIL, rawOf } from "./composed"
import { DOMAIN, type Letter, letters, publishedKeys } from "./letters"
import { byMailauth, byPythonDkim } from "./verifiers"

const SEED = 20_261_121

const { dkim, records } = publishedKeys()

/** What is kept of mail beside its own recipe. */
const KEPT = { address: undefined, settings: { mail_host: null, key_id: "key" } }

/** The message, which is the same when it is made again from what is kept of it. */
async function compose({ files, ...letter }: Letter, folder: ReturnType<typeof attachable>) {
  const attachments = files.map(({ filename, content_type, bytes }, index) => ({
    filename,
    content_type,
    content_id: null,
    path: folder.file(`${index}`, bytes),
  }))
  const mail = { ...letter, attachments, dkim }
  const { raw, recipe } = await composeMail(mail)
  const kept = recipeIn(rowOfRecipe(recipe, KEPT), false)
  expect(kept).toEqual({ ...KEPT, recipe })
  expect(Buffer.compare(await rawOf({ ...mail, dkim: [], recipe }), raw)).toBe(0)
  return raw
}

const PASS = {
  dkim: ["pass", "pass"],
  spf: "pass",
  dmarc: "pass",
  aligned: { dkim: DOMAIN, spf: DOMAIN },
}

describe.skipIf(missing("dkimverify"))("letters of every kind", () => {
  const samples = fc.sample(letters, { numRuns: sizes.letters, seed: SEED })

  test(`pass everywhere: ${samples.length} of them`, async () => {
    using folder = attachable()
    const messages: Uint8Array[] = []
    for (const letter of samples) {
      const raw = await compose(letter, folder)
      expect(isClean(raw)).toBe(true)
      const longest = Math.max(...Buffer.from(raw).toString("latin1").split("\r\n").map(lengthOf))
      expect(longest).toBeLessThanOrEqual(998)
      messages.push(raw)
    }
    for (const raw of messages) {
      expect(await byMailauth(raw, `bounce@${DOMAIN}`, records)).toEqual(PASS)
    }
    const words = await byPythonDkim(messages, records)
    expect(words.filter((word) => word.join() !== "true,true")).toEqual([])
    expect(words).toHaveLength(sizes.letters)
  })

  test("fail as soon as one byte is another, so the verifiers do look", async () => {
    const raw = Buffer.from(await rawOf({ ...MAIL, dkim }))
    const changed = Buffer.from(raw.toString("latin1").replace("Dong.", "Dang."), "latin1")
    const second = Buffer.from(
      raw.toString("latin1").replace("\r\nTo:", "\r\nFrom: e@e.test\r\nTo:"),
    )
    const [whole, ...broken] = await byPythonDkim([raw, changed, second], records)
    expect(whole).toEqual([true, true])
    expect(broken.flat()).toHaveLength(4)
    expect(broken.flat()).not.toContain(true)
    const found = await byMailauth(changed, `bounce@${DOMAIN}`, records)
    expect(found.dkim).not.toContain("pass")
  })
})

const lengthOf = (line: string) => line.length

describe("signing", () => {
  test("puts one field for each key before the message, and changes nothing of it", async () => {
    const plain = Buffer.from(await rawOf(MAIL))
    const whole = Buffer.from(await rawOf({ ...MAIL, dkim }))
    expect(whole.subarray(-plain.length).equals(plain)).toBe(true)
    const added = whole.subarray(0, -plain.length).toString()
    expect(added.match(/^DKIM-Signature: /gm)).toHaveLength(dkim.length)
    expect(added).toContain(" t=1767323045;")
  })

  test("gives the same bytes at every attempt", async () => {
    const once = await rawOf({ ...MAIL, dkim })
    const again = await rawOf({ ...MAIL, dkim })
    expect(Buffer.compare(once, again)).toBe(0)
  })

  test("refuses a key it cannot read, and one whose name would break the header", () => {
    const raw = Buffer.from("From: a\r\n\r\n")
    const [key] = dkim
    if (!key) throw new Error("no key")
    expect(() => signed(raw, [{ ...key, private_key: "none" }], 0)).toThrow()
    expect(() => signed(raw, [{ ...key, selector: "a\rb" }], 0)).toThrow("signatures")
  })
})
