import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { resolver } from "../../src/core/dns"
import { openWorkers, type Workers } from "../../src/core/workers"
import { dmarcRefusal, type MailArrival, verify } from "../../src/inbound/verdicts"
import { sign, signable } from "../../src/lib/dkim"
import { type NameServer, nameServer, type Say } from "../core/name-server"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const published = publicKey.export({ type: "spki", format: "der" }).toString("base64")
const KEY = `v=DKIM1; k=rsa; p=${published}`

const txt = (text: string): Say => [{ data: text.match(/.{1,255}/g) ?? [] }]

/** What the name server of these tests says, by `TYPE name`. */
let zone: Record<string, Say>
const usual: Record<string, Say> = {
  "TXT s._domainkey.acme.test": txt(KEY),
  "TXT acme.test": txt("v=spf1 ip4:192.0.2.1 -all"),
  "TXT _dmarc.acme.test": txt("v=DMARC1; p=reject"),
}

let server: NameServer
let workers: Workers
beforeAll(async () => {
  server = await nameServer((name, kind) => zone[`${kind} ${name.toLowerCase()}`] ?? [])
  workers = openWorkers({ size: 2 })
})
afterAll(async () => {
  server.close()
  await workers.close()
})

const LETTER = "From: Ann <ann@acme.test>\r\nTo: bob@b.test\r\nSubject: Hello\r\n\r\nHello Bob,\r\n"

function signed(letter = LETTER, domain = "acme.test"): Buffer {
  const time = Math.floor(Date.now() / 1000) - 60
  const signer = { domain, selector: "s", algorithm: "rsa", key: privateKey, time } as const
  return Buffer.from(sign(signable(Buffer.from(letter)), signer) + letter)
}

const OWN: MailArrival = { address: "192.0.2.1", helo: "mx.acme.test", mail_from: "ann@acme.test" }
const STRANGER: MailArrival = { ...OWN, address: "192.0.2.99" }

function judge(
  mail: Uint8Array | { path: string },
  arrival = OWN,
  more: Record<string, Say> = {},
  dns_ms?: number,
) {
  zone = { ...usual, ...more }
  const dns = resolver({ servers: [server.address], try_ms: 100 })
  return verify(mail, arrival, { workers, dns, host: "mx.here.test", ...(dns_ms && { dns_ms }) })
}

describe("a mail", () => {
  test("of its own server, signed, passes, and its bytes stay with the caller", async () => {
    const mail = signed()
    const verdicts = await judge(mail)
    expect(verdicts).toMatchObject({ spf: "pass", dkim: "pass", dmarc: "pass", arc: "none" })
    expect(verdicts.verified).toBe(true)
    expect(verdicts.detail.dkim).toMatchObject([{ domain: "acme.test", key_bits: 2048 }])
    expect(verdicts.detail.dmarc).toMatchObject({ policy: "reject", spf_aligned: true })
    expect(mail.length).toBeGreaterThan(LETTER.length)
  })

  test("in a file passes as well", async () => {
    const folder = mkdtempSync(join(tmpdir(), "belfry-verdicts-"))
    const path = join(folder, "mail")
    writeFileSync(path, signed())
    expect(await judge({ path })).toMatchObject({ spf: "pass", dkim: "pass", dmarc: "pass" })
    rmSync(folder, { recursive: true })
  })

  test("that a stranger forwards fails SPF, but its signature still speaks for it", async () => {
    const verdicts = await judge(signed(), STRANGER)
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "pass", dmarc: "pass", verified: false })
    expect(dmarcRefusal(verdicts)).toBeUndefined()
  })

  test("that was changed on its way fails", async () => {
    const verdicts = await judge(Buffer.from(`${signed()}P.S. Send money.\r\n`), STRANGER)
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "fail", dmarc: "fail", verified: false })
    expect(verdicts.detail.dkim[0]?.reason).toBe("The body was changed after it was signed.")
    expect(dmarcRefusal(verdicts)).toContain("The DMARC policy of acme.test")
  })

  test("without From, or with several From fields", async () => {
    const none = await judge(Buffer.from(LETTER.replace(/^From.*\r\n/, "")))
    expect(none).toMatchObject({ dmarc: "none", verified: true })
    const two = await judge(Buffer.from(`From: x@other.test\r\n${LETTER}`))
    expect(two).toMatchObject({ spf: "pass", dmarc: "fail", verified: false })
    expect(dmarcRefusal(two)).toContain("2 From fields")
  })
})

describe("DNS that does not answer", () => {
  const broken: [string, Say][] = [
    ["SERVFAIL", "SERVFAIL"],
    ["silence", "silence"],
  ]
  test.each(broken)("with %s is temperror, and nothing is refused", async (_, say) => {
    const all = Object.fromEntries(Object.keys(usual).map((name) => [name, say]))
    const verdicts = await judge(signed(), OWN, all, 500)
    expect(verdicts).toMatchObject({ spf: "temperror", dkim: "temperror", dmarc: "temperror" })
    expect(verdicts.verified).toBe(true)
    expect(dmarcRefusal(verdicts)).toBeUndefined()
  })

  test("for the key only leaves DMARC open, where nothing else speaks for the mail", async () => {
    const verdicts = await judge(signed(), STRANGER, { "TXT s._domainkey.acme.test": "SERVFAIL" })
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "temperror", dmarc: "temperror" })
  })
})
