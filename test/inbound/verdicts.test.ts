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
import { noKnot, startKnot } from "../harness/knot"
import { arcSet, bytesOf, dkimField } from "./mail-signing"

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

function signed(letter = LETTER, domain = "acme.test", key = privateKey): Buffer {
  const time = Math.floor(Date.now() / 1000) - 60
  const signer = { domain, selector: "s", algorithm: "rsa", key, time } as const
  return Buffer.from(sign(signable(Buffer.from(letter)), signer) + letter)
}

const OWN: MailArrival = { address: "192.0.2.1", helo: "mx.acme.test", mail_from: "ann@acme.test" }
const STRANGER: MailArrival = { ...OWN, address: "192.0.2.99" }

function verdictsOf(
  mail: Uint8Array | { path: string },
  arrival = OWN,
  more: Record<string, Say> = {},
  dns_ms?: number,
) {
  zone = { ...usual, ...more }
  const is_silent = Object.values(more).includes("silence")
  const dns = resolver({ servers: [server.address], try_ms: is_silent ? 100 : 2000 })
  return verify(mail, arrival, { workers, dns, host: "mx.here.test", ...(dns_ms && { dns_ms }) })
}

describe("a mail", () => {
  test("of its own server, signed, passes, and its bytes stay with the caller", async () => {
    const mail = signed()
    const verdicts = await verdictsOf(mail)
    expect(verdicts).toMatchObject({ spf: "pass", dkim: "pass", dmarc: "pass", arc: "none" })
    expect(verdicts.verified).toBe(true)
    expect(verdicts.detail.dkim).toMatchObject([{ domain: "acme.test" }])
    expect(verdicts.detail.dmarc).toMatchObject({ policy: "reject" })
    expect(mail.length).toBeGreaterThan(LETTER.length)
  })

  test("in a file passes as well", async () => {
    const folder = mkdtempSync(join(tmpdir(), "belfry-verdicts-"))
    const path = join(folder, "mail")
    writeFileSync(path, signed())
    expect(await verdictsOf({ path })).toMatchObject({ spf: "pass", dkim: "pass", dmarc: "pass" })
    rmSync(folder, { recursive: true })
  })

  test("that a stranger forwards fails SPF, but its signature still speaks for it", async () => {
    const verdicts = await verdictsOf(signed(), STRANGER)
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "pass", dmarc: "pass", verified: false })
    expect(dmarcRefusal(verdicts)).toBeUndefined()
  })

  test("that was changed on its way fails", async () => {
    const verdicts = await verdictsOf(Buffer.from(`${signed()}P.S. Send money.\r\n`), STRANGER)
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "fail", dmarc: "fail", verified: false })
    expect(dmarcRefusal(verdicts)).toContain("The DMARC policy of acme.test")
  })

  test("without From, or with several From fields", async () => {
    const none = await verdictsOf(Buffer.from(LETTER.replace(/^From.*\r\n/, "")))
    expect(none).toMatchObject({ dmarc: "none", verified: true })
    const two = await verdictsOf(Buffer.from(`From: x@other.test\r\n${LETTER}`))
    expect(two).toMatchObject({ spf: "pass", dmarc: "fail", verified: false })
    expect(dmarcRefusal(two)).toContain("2 From fields")
  })
})

describe("a signature", () => {
  const at = (received_at: string): MailArrival => ({ ...STRANGER, received_at })

  test("that has expired since the mail came in still counts", async () => {
    const mail = { fields: ["From: ann@acme.test"], body: "Hello.\r\n" }
    const tags = { domain: "acme.test", selector: "s", canon: "relaxed/simple", h: ["From"] }
    const more = ["t=1700000000", "x=1700003600"]
    const key = { algorithm: "rsa-sha256", key: privateKey } as const
    const raw = bytesOf({
      ...mail,
      fields: [dkimField(mail, { ...tags, more }, key), ...mail.fields],
    })
    const then = await verdictsOf(raw, at("2023-11-14T23:00:00.000Z"))
    expect(then).toMatchObject({ dkim: "pass", dmarc: "pass" })
    const later = await verdictsOf(raw, at("2023-11-14T23:30:00.000Z"))
    expect(later).toMatchObject({ dkim: "fail", dmarc: "fail" })
  })

  test("with a key of more than 4,096 bits does not count", async () => {
    const large = generateKeyPairSync("rsa", { modulusLength: 4224 })
    const der = large.publicKey.export({ type: "spki", format: "der" }).toString("base64")
    const key = { "TXT s._domainkey.acme.test": txt(`v=DKIM1; p=${der}`) }
    const verdicts = await verdictsOf(signed(LETTER, "acme.test", large.privateKey), OWN, key)
    expect(verdicts).toMatchObject({ dkim: "fail", spf: "pass", dmarc: "pass" })
  })

  test("that is wrong counts like none where the key only tests", async () => {
    const key = { "TXT s._domainkey.acme.test": txt(`${KEY}; t=y`) }
    const changed = Buffer.from(signed().toString().replace("Hello\r", "Hallo\r"))
    const verdicts = await verdictsOf(changed, OWN, key)
    expect(verdicts).toMatchObject({ dkim: "none", dmarc: "pass" })
    expect(await verdictsOf(signed(), STRANGER, key)).toMatchObject({ dkim: "pass", dmarc: "pass" })
  })
})

test("a signature that leaves a From field open is worth nothing", async () => {
  const added = await verdictsOf(Buffer.from(`From: ceo@bank.test\r\n${signed()}`))
  expect(added).toMatchObject({ dkim: "fail", dmarc: "fail" })
  const mail = { fields: ["From: a@acme.test", "From: b@acme.test"], body: "Hello.\r\n" }
  const by = async (h: string[]) => {
    const tags = { domain: "acme.test", selector: "s", canon: "relaxed/relaxed", h }
    const key = { algorithm: "rsa-sha256", key: privateKey } as const
    return verdictsOf(bytesOf({ ...mail, fields: [dkimField(mail, tags, key), ...mail.fields] }))
  }
  expect(await by(["From"])).toMatchObject({ dkim: "fail" })
  expect(await by(["From", "From"])).toMatchObject({ dkim: "pass", dmarc: "fail" })
})

test("a signature that leaves a part of the body open is worth nothing", async () => {
  const mail = { fields: ["From: ann@acme.test"], body: "Hello.\r\nSend money.\r\n" }
  const by = async (length: number) => {
    const tags = {
      domain: "acme.test",
      selector: "s",
      canon: "relaxed/relaxed",
      h: ["From"],
      length,
    }
    const key = { algorithm: "rsa-sha256", key: privateKey } as const
    return verdictsOf(bytesOf({ ...mail, fields: [dkimField(mail, tags, key), ...mail.fields] }))
  }
  expect((await by(mail.body.length)).dkim).toBe("pass")
  expect(await by(8)).toMatchObject({ dkim: "fail" })
})

describe("a chain", () => {
  test("passes with an Ed25519 key, and changes nothing else", async () => {
    const pair = generateKeyPairSync("ed25519")
    const bare = pair.publicKey.export({ type: "spki", format: "der" }).subarray(-32)
    const mail = { fields: ["From: ann@acme.test"], body: "Hello.\r\n" }
    const set = arcSet(
      mail,
      [],
      {
        domain: "list.test",
        selector: "arc",
        canon: "relaxed/relaxed",
        h: ["From"],
        instance: 1,
        cv: "none",
        results: "mx.list.test; dkim=pass header.d=acme.test",
      },
      { algorithm: "ed25519-sha256", key: pair.privateKey },
    )
    const raw = bytesOf({ ...mail, fields: [set.aar, set.ams, set.as, ...mail.fields] })
    const record = txt(`v=DKIM1; k=ed25519; p=${bare.toString("base64")}`)
    const name = "TXT arc._domainkey.list.test"
    const verdicts = await verdictsOf(raw, STRANGER, { [name]: record })
    expect(verdicts).toMatchObject({ arc: "pass", dkim: "none", dmarc: "fail" })
    expect(await verdictsOf(raw, STRANGER, { [name]: "SERVFAIL" })).toMatchObject({
      arc: "temperror",
    })
    expect(await verdictsOf(raw, STRANGER)).toMatchObject({ arc: "fail" })

    const changed = Buffer.concat([raw, Buffer.from("Added.\r\n")])
    expect(await verdictsOf(changed, STRANGER, { [name]: record })).toMatchObject({ arc: "fail" })
  })
})

describe("what is refused when the policies of others are enforced:", () => {
  const policies: [string, boolean][] = [
    ["v=DMARC1; p=none", false],
    ["v=DMARC1; p=quarantine", false],
    ["v=DMARC1; p=reject", true],
    ["v=DMARC1; p=reject; t=y", false],
    ["v=DMARC1; p=reject; pct=0", false],
  ]
  test.each(policies)("%s: %p", async (policy, refused) => {
    const more = { "TXT _dmarc.acme.test": txt(policy) }
    const verdicts = await verdictsOf(Buffer.from(LETTER), STRANGER, more)
    expect(verdicts.dmarc).toBe("fail")
    expect(dmarcRefusal(verdicts) !== undefined).toBe(refused)
    expect(dmarcRefusal(await verdictsOf(signed(), STRANGER, more))).toBeUndefined()
  })

  test("with pct= a part of the mail, and the same mail again", async () => {
    const more = { "TXT _dmarc.acme.test": txt("v=DMARC1; p=reject; pct=40") }
    const refused = async (number: number) => {
      const letter = LETTER.replace("Hello", `Hello ${number}`)
      return dmarcRefusal(await verdictsOf(Buffer.from(letter), STRANGER, more)) !== undefined
    }
    const all = async () => {
      const answers: boolean[] = []
      for (let number = 0; number < 100; number++) answers.push(await refused(number))
      return answers
    }
    const first = await all()
    expect(await all()).toEqual(first)
    const share = first.filter(Boolean).length
    expect(share).toBeGreaterThan(20)
    expect(share).toBeLessThan(60)
  })
})

/** RFC 8463, A.2 and A.3: one mail with a signature of each algorithm, by others. */
describe("the mail of RFC 8463", () => {
  const records = {
    "TXT brisbane._domainkey.football.example.com": txt(
      "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    ),
    "TXT test._domainkey.football.example.com": txt(
      "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB",
    ),
  }
  const MAIL = `DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
`.replaceAll("\n", "\r\n")

  test("has two right signatures", async () => {
    const { detail } = await verdictsOf(Buffer.from(MAIL), STRANGER, records)
    expect(detail.dkim).toMatchObject([
      { result: "pass", selector: "brisbane" },
      { result: "pass", selector: "test" },
    ])
  })
})

describe("the words of SPF:", () => {
  const records: [string, string, string][] = [
    ["v=spf1 ip4:192.0.2.1 -all", "pass", "pass"],
    ["v=spf1 -all", "fail", "fail"],
    ["v=spf1 ~all", "softfail", "none"],
    ["v=spf1 ?all", "neutral", "none"],
    ["v=spf1 nonsense -all", "permerror", "none"],
    ["another text", "none", "none"],
  ]
  test.each(records)("%s is %s, and counts as %s", async (record, word, verdict) => {
    const { spf, verified, detail } = await verdictsOf(signed(), OWN, {
      "TXT acme.test": txt(record),
    })
    expect(detail.spf.result as string).toBe(word)
    expect(spf as string).toBe(verdict)
    expect(verified).toBe(verdict !== "fail")
  })
})

test("the null sender is judged by its HELO name", async () => {
  const helo = "mx.acme.test"
  const records = {
    [`TXT ${helo}`]: txt("v=spf1 a -all"),
    [`A ${helo}`]: [{ address: "192.0.2.1" }],
  }
  const verdicts = await verdictsOf(Buffer.from(LETTER), { ...OWN, mail_from: "" }, records)
  expect(verdicts.detail.spf).toMatchObject({ result: "pass", domain: helo })
  expect(verdicts.dmarc).toBe("pass")
})

describe.skipIf(noKnot)("with a name server of others", () => {
  test("keys, includes and mail servers are found", async () => {
    await using knot = await startKnot({
      "acme.test": [
        `s._domainkey TXT "${KEY}"`,
        '@ TXT "v=spf1 include:other.test -all"',
        '_dmarc TXT "v=DMARC1; p=reject"',
      ],
      "other.test": ['@ TXT "v=spf1 mx -all"', "@ MX 10 mail", "mail A 192.0.2.1"],
    })
    const tools = { workers, dns: resolver({ servers: [knot.address] }), host: "mx.here.test" }
    const verdicts = await verify(signed(), OWN, tools)
    expect(verdicts).toMatchObject({ spf: "pass", dkim: "pass", dmarc: "pass", verified: true })
  })
})

describe("DNS that does not answer", () => {
  const broken: [string, Say][] = [
    ["SERVFAIL", "SERVFAIL"],
    ["silence", "silence"],
  ]
  test.each(broken)("with %s is temperror, and nothing is refused", async (_, say) => {
    const all = Object.fromEntries(Object.keys(usual).map((name) => [name, say]))
    const verdicts = await verdictsOf(signed(), OWN, all, 500)
    expect(verdicts).toMatchObject({ spf: "temperror", dkim: "temperror", dmarc: "temperror" })
    expect(verdicts.verified).toBe(true)
    expect(dmarcRefusal(verdicts)).toBeUndefined()
  })

  test("for the key only leaves DMARC open, where nothing else speaks for the mail", async () => {
    const verdicts = await verdictsOf(signed(), STRANGER, {
      "TXT s._domainkey.acme.test": "SERVFAIL",
    })
    expect(verdicts).toMatchObject({ spf: "fail", dkim: "temperror", dmarc: "temperror" })
  })
})
