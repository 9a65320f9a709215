import { describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { eq } from "drizzle-orm"
import { unsubscribeLinks } from "../../src/consents/tables"
import {
  keepLinks,
  linkOfLocalPart,
  lookupLink,
  unsubscribeLinksAt,
} from "../../src/consents/unsubscribe-links"
import { newId } from "../../src/core/ids"
import { isMailbox } from "../../src/lib/address"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

const linksWith = (key: string, mail_host: string | null = "mx.belfry.test") =>
  unsubscribeLinksAt({
    secrets: {
      mac: (purpose, text) =>
        createHmac("sha256", key + purpose)
          .update(text)
          .digest(),
    },
    mail_host,
  })

const ADDRESS = "https://belfry.test"

const links = linksWith("first")
const category = (key: string) => ({ type: "category" as const, key })

async function subject(address = "ann@example.test") {
  const { project_id } = await service.project()
  return { project_id, address, scope: category("news") }
}

/** As the transaction of the mail does it. */
async function kept(about: Awaited<ReturnType<typeof subject>>, by = links) {
  const token = by.tokenFor(about)
  await store.tx((tx) => keepLinks(tx, [{ token, ...about }]))
  return token
}

describe("a token", () => {
  test("is 128 bits in base32, and the same for every mail of one kind to one address", async () => {
    const about = await subject()
    const token = links.tokenFor(about)
    expect(token).toMatch(/^[a-z2-7]{26}$/)
    expect(links.tokenFor({ ...about, address: "Ann@EXAMPLE.test" })).toBe(token)
  })

  test("is another one for another project, address, category, kind or secret", async () => {
    const about = await subject()
    const tokens = [
      links.tokenFor(about),
      links.tokenFor({ ...about, project_id: newId() }),
      links.tokenFor({ ...about, address: "ben@example.test" }),
      links.tokenFor({ ...about, scope: category("offers") }),
      links.tokenFor({ ...about, scope: { type: "topic", key: "news" } }),
      links.tokenFor({ ...about, scope: { type: "broadcast", key: null } }),
      linksWith("second").tokenFor(about),
    ]
    expect(new Set(tokens).size).toBe(tokens.length)
  })

  test("means nothing until a mail with it was accepted, then what it was made for", async () => {
    const about = await subject()
    const token = links.tokenFor(about)
    expect(await lookupLink(store.read, token)).toBeUndefined()
    await kept(about)
    expect(await lookupLink(store.read, token)).toMatchObject(about)
    expect(await lookupLink(store.read, token.toUpperCase())).toMatchObject(about)
    expect(await linkOfLocalPart(store.read, `u+${token}`)).toMatchObject(about)
  })

  test("means nothing with any character changed, missing or added", async () => {
    const token = await kept(await subject())
    const wrong = [...token].flatMap((one, at) => [
      `${token.slice(0, at)}${one === "a" ? "b" : "a"}${token.slice(at + 1)}`,
      token.slice(0, at) + token.slice(at + 1),
      `${token.slice(0, at)}a${token.slice(at)}`,
      `${token.slice(0, at)}1${token.slice(at + 1)}`,
    ])
    for (const one of wrong.filter((one) => one !== token)) {
      expect([one, await lookupLink(store.read, one)]).toEqual([one, undefined])
      expect([one, await linkOfLocalPart(store.read, `u+${one}`)]).toEqual([one, undefined])
    }
  })

  test("goes on to mean the same when the secrets change", async () => {
    const about = await subject()
    const [old, fresh] = [await kept(about), await kept(about, linksWith("second"))]
    expect(old).not.toBe(fresh)
    for (const token of [old, fresh]) {
      expect(await lookupLink(store.read, token)).toMatchObject(about)
    }
  })

  test("is kept once, however many mails bring it at once and in whatever order", async () => {
    const { project_id } = await subject()
    const all = Array.from({ length: 20 }, (_, at) => {
      const about = { project_id, address: `p${at}@example.test`, scope: category("news") }
      return { ...about, token: links.tokenFor(about) }
    })
    const batches = Array.from({ length: 8 }, (_, at) => (at % 2 ? all : all.toReversed()))
    await Promise.all(batches.map((list) => store.tx((tx) => keepLinks(tx, [...list, ...list]))))
    const ours = eq(unsubscribeLinks.project_id, project_id)
    expect(await store.read.select().from(unsubscribeLinks).where(ours)).toHaveLength(all.length)
  })
})

describe("mail carries", () => {
  test("both links, and the mark of one-click unsubscribing", () => {
    const token = "a".repeat(26)
    expect(links.headersOf(token, ADDRESS)).toEqual({
      "List-Unsubscribe": `<https://belfry.test/u/${token}>, <mailto:u+${token}@mx.belfry.test>`,
      "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    })
    expect(isMailbox(`u+${token}@mx.belfry.test`)).toBe(true)
    expect(links.urlsOf(token, ADDRESS)).toEqual({
      unsubscribe_url: `https://belfry.test/u/${token}`,
      preferences_url: `https://belfry.test/p/${token}`,
    })
  })

  test("no address where this server receives no mail", () => {
    const fields = linksWith("first", null).headersOf("b".repeat(26), ADDRESS)
    expect(fields["List-Unsubscribe"]).toBe(`<https://belfry.test/u/${"b".repeat(26)}>`)
  })

  test("an address to write to alone where the public address is not known, and nothing with neither", () => {
    const token = "c".repeat(26)
    const address = `mailto:u+${token}@mx.belfry.test`
    expect(links.headersOf(token, undefined)).toEqual({ "List-Unsubscribe": `<${address}>` })
    const urls = { unsubscribe_url: address, preferences_url: "" }
    expect(links.urlsOf(token, undefined)).toEqual(urls)
    const deaf = linksWith("first", null)
    expect(deaf.headersOf(token, undefined)).toEqual({})
    expect(deaf.urlsOf(token, undefined)).toEqual({ ...urls, unsubscribe_url: "" })
  })
})
