import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { resolver } from "../../src/core/dns"
import { openWorkers, type Workers } from "../../src/core/workers"
import { type MailArrival, verify } from "../../src/inbound/verdicts"
import type { MailVerdicts } from "../../src/inbound/verify-task"
import { type NameServer, nameServer, type Say } from "../core/name-server"
import { sizes } from "../harness/sizes"
import { type ArcFields, arcSet, bytesOf, type DraftMail, dkimField } from "./mail-signing"
import { sampleMails } from "./sample-mails"
import { txtRows } from "./sample-spf"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const KEY = `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`
const signing = { algorithm: "rsa-sha256", key: privateKey } as const
const tags = { domain: "acme.test", selector: "s", canon: "relaxed/relaxed", h: ["From", "To"] }

/** What the name server of these tests says; each test sets it. */
let say: (name: string, kind: string) => Say
let server: NameServer
let workers: Workers
beforeAll(async () => {
  server = await nameServer((name, kind) => say(name.toLowerCase(), kind))
  workers = openWorkers({ size: 2 })
})
afterAll(async () => {
  server.close()
  await workers.close()
})

const usual = (name: string, kind: string): Say => {
  if (kind === "TXT" && name === "s._domainkey.acme.test") return txtRows(KEY)
  return []
}

const ARRIVAL: MailArrival = {
  address: "192.0.2.1",
  helo: "mx.acme.test",
  mail_from: "ann@acme.test",
}

function judge(
  mail: Uint8Array,
  zone: typeof say = usual,
  arrival = ARRIVAL,
  dns_ms = 5_000,
): Promise<MailVerdicts> {
  say = zone
  const dns = resolver({ servers: [server.address], try_ms: 1_000 })
  return verify(mail, arrival, { workers, dns, host: "mx.here.test", dns_ms })
}

const base: DraftMail = { fields: ["From: ann@acme.test", "To: bob@b.test"], body: "Hello.\r\n" }
const signature = dkimField(base, tags, signing)
const mailOf = (fields: string[], body = base.body) =>
  bytesOf({ fields: [...fields, ...base.fields], body })

describe("a header", () => {
  test("of 1 MB is not judged, and its author counts as unproven", async () => {
    const verdicts = await judge(mailOf([`DKIM-Signature: v=1; b=${"A".repeat(1 << 20)}`]))
    expect(verdicts).toMatchObject({ dkim: "fail", dmarc: "fail", verified: false })
    expect(verdicts.detail.dmarc.reason).toBe("The header is too large to find its author.")
  })

  test("of 100,000 fields or lines ends, too", async () => {
    const fields = await judge(bytesOf({ fields: Array(100_000).fill("a: b"), body: "" }))
    expect(fields).toMatchObject({ dkim: "fail", dmarc: "fail" })
    const folded = { fields: [`Subject: x${"\r\n x".repeat(100_000)}`, signature, ...base.fields] }
    expect(await judge(bytesOf({ ...base, ...folded }))).toMatchObject({ dkim: "pass" })
  })

  test("with 400 signatures has the first ten judged, with one question to DNS", async () => {
    const before = server.asked()
    const { dkim, detail } = await judge(mailOf(Array(400).fill(signature)))
    expect(dkim).toBe("pass")
    expect(detail.dkim.filter(({ result }) => result === "pass")).toHaveLength(10)
    expect(detail.dkim.at(-1)?.result).toBe("fail")
    // The key, the SPF record, and two places of a policy.
    expect(server.asked() - before).toBeLessThanOrEqual(4)
  })

  test("a long signature is not judged, the others are", async () => {
    const long = signature.replace(/;\r\n b=/, `; z=${"x".repeat(20_000)};\r\n b=`)
    const { detail } = await judge(mailOf([`DKIM-Signature: ${"a=b; ".repeat(9_000)}`, long]))
    expect(detail.dkim.map(({ result }) => result)).toEqual(["fail", "fail"])
    expect(await judge(mailOf([long, signature]))).toMatchObject({ dkim: "pass" })
  })

  const TRAPS = {
    spaces: " ".repeat(16_000),
    "short runs of spaces": `${" ".repeat(199)}x`.repeat(75),
    semicolons: ";".repeat(15_000),
    tags: "a=b;".repeat(3_900),
    folds: "\r\n a=b;".repeat(2_000),
    names: `h=${"from:".repeat(3_000)};`,
    parentheses: "(".repeat(16_000),
  }
  test.each(Object.entries(TRAPS))("ten signatures of %s are read in time", async (_, text) => {
    const names = ["DKIM-Signature", "ARC-Seal", "ARC-Message-Signature"]
    const fields = names.flatMap((name) => Array(10).fill(`${name}: i=1; v=1; ${text}x`))
    const verdicts = await judge(mailOf([...fields, ...Array(1_900).fill("x: y")]))
    expect(verdicts).toMatchObject({ dkim: "fail", arc: "fail" })
  })

  const SENDERS = [
    "(".repeat(60_000),
    '"'.repeat(60_001),
    "<".repeat(60_000),
    "@".repeat(60_000),
    `${" ".repeat(60_000)}x`,
    `${"a:".repeat(30_000)};`,
    "<>".repeat(30_000),
  ]
  test.each(SENDERS)("a From field of traps names no author", async (text) => {
    const verdicts = await judge(bytesOf({ ...base, fields: [`From: ${text}`] }))
    expect(verdicts.dmarc).toBe("none")
  })

  test("with more authors than may be asked for fails", async () => {
    const list = Array.from({ length: 1_000 }, (_, number) => `a@d${number}.test`).join(",")
    const verdicts = await judge(bytesOf({ ...base, fields: [`From: ${list}`] }))
    expect(verdicts.detail.dmarc).toMatchObject({ result: "fail", policy: "reject" })
  })
})

test("mails with random damage are judged, whatever is in them", async () => {
  const random = fuzzNumbers(7)
  for (const { raw, arrival, zone } of sampleMails(7, sizes.verdicts)) {
    const damaged = Buffer.from(raw)
    for (let count = 0; count < 20; count++) {
      const at = random(damaged.length)
      damaged[at] = random(4) === 0 ? random(256) : (raw[random(raw.length)] ?? 0)
    }
    const cut = damaged.subarray(0, random(3) === 0 ? random(damaged.length) : undefined)
    const { spf, dkim, dmarc, arc } = await judge(
      cut,
      (name, kind) => zone[`${kind} ${name}`] ?? [],
      arrival,
    )
    for (const verdict of [spf, dkim, dmarc, arc]) {
      expect(["pass", "fail", "none", "temperror"]).toContain(verdict)
    }
  }
})

function fuzzNumbers(seed: number) {
  let state = seed
  return (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

describe("a chain", () => {
  function chain(hops: number): DraftMail {
    const mail = { ...base, fields: [...base.fields] }
    const sets: ArcFields[] = []
    for (let instance = 1; instance <= hops; instance++) {
      const cv = instance === 1 ? "none" : "pass"
      const set = arcSet(mail, sets, { ...tags, instance, cv, results: "x; spf=pass" }, signing)
      sets.push(set)
      mail.fields.unshift(set.as, set.ams, set.aar)
    }
    return mail
  }

  test("of 50 hops passes, and one of 51 does not", async () => {
    expect(await judge(bytesOf(chain(50)))).toMatchObject({ arc: "pass" })
    expect(await judge(bytesOf(chain(51)))).toMatchObject({ arc: "fail" })
  })

  test("of 1,000 seals is broken", async () => {
    const seal = "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=acme.test; s=s; b=AAAA"
    expect(await judge(mailOf(Array(1_000).fill(seal)))).toMatchObject({ arc: "fail" })
  })
})

describe("a body of 25 MB", () => {
  const SIZE = 25 << 20
  const BODIES = {
    "usual lines": `${"x".repeat(74)}\r\n`,
    "one line": "x",
    "empty lines": "\r\n",
    "line feeds": "\n",
    "spaces before line ends": " \r\n",
    tabs: "\tx",
  }
  test.each(Object.entries(BODIES))("of %s is read by ten signatures", async (_, part) => {
    const body = part.repeat(SIZE / part.length)
    const own = { ...base, body }
    const last = dkimField(own, { ...tags, canon: "simple/simple" }, signing)
    const others = Array.from({ length: 9 }, (_, at) =>
      dkimField({ ...base, body: "" }, { ...tags, length: at }, signing),
    )
    const verdicts = await judge(bytesOf({ ...own, fields: [...others, last, ...base.fields] }))
    expect(verdicts.dkim).toBe("pass")
  })
})

describe("DNS bombs:", () => {
  test("includes without end are a permerror after ten questions", async () => {
    const before = server.asked()
    const { detail } = await judge(mailOf([]), (name, kind) => {
      if (kind !== "TXT" || name.startsWith("_dmarc")) return []
      return txtRows(`v=spf1 include:a.${name} include:b.${name} -all`)
    })
    expect(detail.spf.result).toBe("permerror")
    expect(server.asked() - before).toBeLessThan(20)
  })

  test("ten lists of ten mail servers ask for all of them, and more are a permerror", async () => {
    const zone =
      (hosts: number) =>
      (name: string, kind: string): Say => {
        if (name.startsWith("_dmarc")) return []
        const all = Array.from({ length: 10 }, (_, number) => `mx:m${number}.acme.test`).join(" ")
        if (kind === "TXT") return txtRows(`v=spf1 ${all} -all`)
        const exchanges = Array.from({ length: hosts }, (_, number) => `h${number}.${name}`)
        if (kind === "MX") return exchanges.map((exchange) => ({ exchange, priority: 10 }))
        return [{ address: "198.51.100.1" }]
      }
    const most = await judge(mailOf([]), zone(10))
    expect(most.detail.spf.result).toBe("fail")
    const over = await judge(mailOf([]), zone(500))
    expect(over.detail.spf.result).toBe("permerror")
  })

  test("a record of 60 KB, and an address of 500 names, end", async () => {
    const record = `v=spf1 ${"ip4:198.51.100.1 ".repeat(3_400)}ptr -all`
    const { detail } = await judge(mailOf([]), (name, kind) => {
      if (kind === "PTR")
        return Array.from({ length: 500 }, (_, n) => ({ domain: `h${n}.acme.test` }))
      return kind === "TXT" && name === "acme.test" ? txtRows(record) : []
    })
    expect(detail.spf.result).toBe("fail")
  })

  test("a server that never answers is given up in time", async () => {
    const verdicts = await judge(mailOf([signature]), () => "silence", ARRIVAL, 300)
    expect(verdicts).toMatchObject({ spf: "temperror", dkim: "temperror", dmarc: "temperror" })
  })

  test("an address or a name of 10,000 characters is no domain", async () => {
    const long = `${"a.".repeat(5_000)}test`
    const verdicts = await judge(mailOf([]), usual, {
      address: "192.0.2.1",
      helo: long,
      mail_from: `a@${long}`,
    })
    expect(verdicts).toMatchObject({ spf: "none", verified: true })
  })
})
