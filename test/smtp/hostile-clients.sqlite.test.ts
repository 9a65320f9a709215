import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { count } from "drizzle-orm"
import { localPartFor } from "../../src/core/mail-token"
import { inboundEmails } from "../../src/inbound/tables"
import { messages } from "../../src/messages/tables"
import { ClientLimits } from "../../src/smtp/mail-server-state"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { locate, missing } from "../harness/peers"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"

quietLog()

const service = await sharedService()
const { store, secrets } = service.parts
const inbound = await inboundServer(service)
const submission = await openSubmission(service)
afterAll(async () => {
  await inbound[Symbol.asyncDispose]()
  await submission[Symbol.asyncDispose]()
})

const project = await service.project()
const domain = await addReceivingDomain(store, project)

let clients = 0
const nextAddress = () => `127.9.${(clients >> 8) & 255}.${clients++ & 255}`

const toInbound = (options = {}) =>
  SmtpDialogue.open(inbound.server.port, { local: nextAddress(), ...options })
const toSubmission = (options = {}) =>
  SmtpDialogue.open(submission.port, { local: nextAddress(), ...options })

async function taken() {
  const [received] = await store.read.select({ all: count() }).from(inboundEmails)
  const [submitted] = await store.read.select({ all: count() }).from(messages)
  return [received?.all, submitted?.all]
}

/** After all that was tried, the servers work as before, and nothing was taken. */
async function expectUnharmed(before: unknown) {
  expect(await taken()).toEqual(before as never)
  using one = await toInbound()
  expect(await one.talk("EHLO me.test", "MAIL FROM:<>", `RCPT TO:<a@${domain}>`)).toStartWith(
    "250 ",
  )
  using two = await toSubmission()
  await two.say("EHLO me.test")
  await two.starttls()
  expect(await two.talk("EHLO me.test", plainLogin("svc", project.key))).toStartWith("235 ")
}

describe("no relay: these recipients are refused on port 25", () => {
  let forms: string[] = []
  beforeAll(async () => {
    const { body } = await project.post("/v1/emails", mail())
    const token = localPartFor(secrets, "b", body.id)
    forms = [
      "victim@elsewhere.test",
      `victim%elsewhere.test@${domain}`,
      `victim%elsewhere.test@${HOST}`,
      `elsewhere.test!victim@${domain}`,
      `a!b!victim%elsewhere.test@${domain}`,
      `@${domain}:victim@elsewhere.test`,
      `@${domain},@${HOST}:victim@elsewhere.test`,
      `"victim@elsewhere.test"@${domain}`,
      `"victim%elsewhere.test"@${domain}`,
      `"any!one"@${domain}`,
      `"@${domain}:victim"@elsewhere.test`,
      `victim@elsewhere.test@${domain}`,
      `victim@${domain}@elsewhere.test`,
      "victim@[127.0.0.1]",
      "victim@[IPv6:::1]",
      "victim@127.0.0.1",
      "victim@localhost",
      `victim@sub.${domain}`,
      `victim@${domain}.elsewhere.test`,
      `victim@${domain}.`,
      `victim@.${domain}`,
      `victim\\@elsewhere.test@${domain}`,
      `victim:elsewhere.test@${domain}`,
      `victim(@elsewhere.test)@${domain}`,
      `victim@${domain}(elsewhere.test)`,
      `victim@elsewhere.test,a@${domain}`,
      `victim@elsewhere.test;a@${domain}`,
      `victim@elsewhere.test> <a@${domain}`,
      `victim@elsewhere.test ORCPT=rfc822;a@${domain}`,
      `${token}@elsewhere.test`,
      `${token}%elsewhere.test@${HOST}`,
      "victim",
    ]
  })

  const senders = [
    "MAIL FROM:<>",
    "MAIL FROM:<ann@elsewhere.test>",
    "MAIL FROM:<me@DOMAIN>",
    "MAIL FROM:<root@localhost> BODY=8BITMIME SMTPUTF8",
  ]

  test.each(senders)("after %s", async (sender) => {
    const before = await taken()
    using it = await toInbound()
    await it.say("EHLO me.test")
    expect(await it.say(sender.replace("DOMAIN", domain))).toStartWith("250 ")
    expect(forms.length).toBeGreaterThanOrEqual(20)
    for (const form of forms) {
      const reply = await it.say(`RCPT TO:<${form}>`)
      expect([form, reply]).toEqual([form, expect.stringMatching(/^550 5\.7\.1 forbidden: /)])
    }
    expect(await it.say("DATA")).toStartWith("503 5.5.1 ")
    await expectUnharmed(before)
  })
})

describe("what stands behind STARTTLS in the open is dropped", () => {
  const injected = [
    "EHLO evil.test\r\n",
    "MAIL FROM:<evil@evil.test>\r\nRCPT TO:<TO>\r\nDATA\r\nSubject: x\r\n\r\nx\r\n.\r\n",
    "RSET\r\nNOOP\r\nSTARTTLS\r\n",
    "X".repeat(2000),
    "AUTH PLAIN ",
    "QUIT\r\n",
  ]

  test.each(injected)("%p", async (text) => {
    const before = await taken()
    for (const [open, to] of [
      [toInbound, `evil@${domain}`],
      [toSubmission, "evil@example.test"],
    ] as const) {
      for (const in_one of [true, false]) {
        using it = await open()
        await it.say("EHLO before.test")
        const evil = text.replace("TO", to)
        if (in_one) it.write(`STARTTLS\r\n${evil}`)
        else {
          it.write("STARTTLS\r\n")
          it.write(evil)
        }
        // Either the text is dropped, or it breaks the handshake: it never counts as said within TLS.
        const is_secure = await it
          .reply()
          .then(() => it.secure())
          .then(
            () => true,
            () => false,
          )
        if (!is_secure) continue
        const said = it.said.length
        expect(await it.say("MAIL FROM:<a@b.test>")).toMatch(/^503 /)
        expect(await it.say("EHLO after.test")).toStartWith("250 ")
        expect(it.said.slice(said)).not.toMatch(/evil|^354|queued/m)
      }
    }
    await expectUnharmed(before)
  })
})

describe("a login", () => {
  test("before TLS is refused in every form, and the password is not looked at", async () => {
    using it = await toSubmission()
    await it.say("EHLO me.test")
    const right = plainLogin("svc", project.key)
    const [, , blob = ""] = right.split(" ")
    for (const line of [right, "AUTH PLAIN", "AUTH LOGIN", "auth login c3Zj", "AUTH CRAM-MD5"]) {
      expect(await it.say(line)).toStartWith("538 5.7.11 unauthorized: ")
    }
    expect(await it.say(blob)).toStartWith("500 5.5.2 ")
    expect(await it.say("MAIL FROM:<me@example.test>")).toStartWith("530 5.7.0 ")
  })

  test("is forgotten with what came before it: none of one session is one of another", async () => {
    using it = await toSubmission()
    await it.say("EHLO me.test")
    await it.starttls()
    expect(await it.say("MAIL FROM:<me@example.test>")).toStartWith("503 5.5.1 ")
    expect(await it.talk("EHLO me.test", "MAIL FROM:<me@example.test>")).toStartWith("530 5.7.0 ")
    expect(await it.say("AUTH PLAIN not-base64!")).toMatch(/^5\d\d /)
    expect(await it.talk("AUTH LOGIN", "*")).toStartWith("501 ")
    expect(await it.say("MAIL FROM:<me@example.test>")).toStartWith("530 5.7.0 ")
  })

  test("does not exist on port 25", async () => {
    using it = await toInbound()
    await it.say("EHLO me.test")
    await it.starttls()
    await it.say("EHLO me.test")
    expect(it.said).not.toContain("AUTH")
    expect(await it.say(plainLogin("svc", project.key))).toStartWith("500 5.5.2 ")
  })

  test("is guessed from 60 addresses: each is banned by itself, and no other client is hurt", async () => {
    const attackers = Array.from({ length: 60 }, (_, at) => `127.10.${at}.1`)
    const guess = async (local: string) => {
      const replies: string[] = []
      for (let connection = 0; connection < 5; connection++) {
        using it = await toSubmission({ local })
        await it.say("EHLO me.test")
        await it.starttls()
        await it.say("EHLO me.test")
        for (let tries = 0; tries < 3; tries++) {
          const reply = await it.say(plainLogin("svc", `svc_live_${connection}${tries}`))
          replies.push(reply.slice(0, 9))
          if (reply.startsWith("421")) break
        }
        await it.end()
      }
      return replies
    }
    const all = await Promise.all(attackers.map(guess))
    for (const replies of all) {
      // Ten guesses: three a connection, and then not one more in a quarter of an hour.
      const [wrong, over] = ["535 5.7.8", "421 4.7.0"]
      const three = [wrong, wrong, over]
      expect(replies).toEqual([...three, ...three, ...three, wrong, over, over])
    }
    for (const local of ["127.10.0.1", "127.10.59.1"]) {
      using banned = await toSubmission({ local })
      await banned.say("EHLO me.test")
      await banned.starttls()
      const reply = await banned.talk("EHLO me.test", plainLogin("svc", project.key))
      expect(reply).toStartWith("421 4.7.0 login_rate_limit_exceeded: ")
    }
    using other = await toSubmission({ local: "127.10.0.2" })
    await other.say("EHLO me.test")
    await other.starttls()
    expect(await other.talk("EHLO me.test", plainLogin("svc", project.key))).toStartWith("235 ")
  })
})

describe("a line that is no command", () => {
  const LONG = "A".repeat(2049)
  const FATAL: Record<string, string | Buffer> = {
    "a NUL": "NOOP\0\r\n",
    "a NUL in an address": "MAIL FROM:<a\0@b.test>\r\n",
    "a line over 2,048 bytes": `NOOP ${LONG}\r\n`,
    "a line without end": LONG,
    "a command over 2,048 bytes": `MAIL FROM:<${LONG}@b.test>\r\n`,
    "1 MB without a line end": Buffer.alloc(1_000_000, "A"),
    "1 MB of NUL": Buffer.alloc(1_000_000),
  }

  test.each(Object.entries(FATAL))("%s ends the session with 550 5.5.2", async (_, bytes) => {
    const before = await taken()
    for (const open of [toInbound, toSubmission]) {
      using it = await open()
      await it.say("EHLO me.test")
      it.write(bytes)
      await it.end()
      expect(it.said).toMatch(/\r\n550 5\.5\.2 validation_error: .*\(req_[0-9a-f]{32}\)\r\n$/)
    }
    await expectUnharmed(before)
  })

  test.each(["NOOP\nQUIT\r\n", "NOOP\rQUIT\r\n"])("%p is mended on port 25 only", async (bytes) => {
    using program = await toSubmission()
    await program.say("EHLO me.test")
    program.write(bytes)
    expect(await program.end()).toMatch(/\r\n550 5\.5\.2 validation_error: .*\r\n$/)
    using server = await toInbound()
    await server.say("EHLO me.test")
    server.write(bytes)
    expect((await server.reply()).text).toStartWith("250 ")
  })

  const ODD: [string, string | Buffer, RegExp][] = [
    ["8-bit in a verb", Buffer.from("N\xd6\xd6P\r\n", "latin1"), /^500 5\.5\.2 /],
    ["8-bit in EHLO", Buffer.from("EHLO m\xe4.test\r\n", "latin1"), /^(?:250|501) /],
    ["8-bit in a sender", Buffer.from("MAIL FROM:<\xe4@b.test>\r\n", "latin1"), /^501 5\.1\.3 /],
    [
      "broken UTF-8 in a sender",
      Buffer.from("MAIL FROM:<\xc3@b.test> SMTPUTF8\r\n", "latin1"),
      /^501 /,
    ],
    ["an escape in a sender", "MAIL FROM:<\x1b[2J@b.test>\r\n", /^501 5\.1\.3 /],
    ["an empty line", "\r\n", /^500 5\.5\.2 /],
    [
      "a SIZE that lies beyond all numbers",
      "MAIL FROM:<a@b.test> SIZE=99999999999999999999\r\n",
      /^552 5\.3\.4 /,
    ],
    ["a SIZE of words", "MAIL FROM:<a@b.test> SIZE=much\r\n", /^501 /],
    ["a negative SIZE", "MAIL FROM:<a@b.test> SIZE=-1\r\n", /^501 /],
    ["a second SIZE", "MAIL FROM:<a@b.test> SIZE=1 SIZE=2\r\n", /^501 /],
    ["an unknown BODY", "MAIL FROM:<a@b.test> BODY=BINARYMIME\r\n", /^501 /],
    [
      "a parameter of an object",
      "MAIL FROM:<a@b.test> __PROTO__=1 CONSTRUCTOR=2\r\n",
      /^(?:250|501|555) /,
    ],
    ["BDAT", "BDAT 5 LAST\r\n", /^50[02] /],
    ["ETRN and TURN", "TURN\r\n", /^50[02] /],
    ["a name of an object", "CONSTRUCTOR\r\n", /^500 /],
    ["another one", "__proto__ x\r\n", /^500 /],
    ["HELP", "HELP\r\n", /^(?:214|500|502) /],
  ]

  test.each(ODD)("%s is answered, and the session goes on", async (_, bytes, reply) => {
    using it = await toInbound()
    await it.say("EHLO me.test")
    it.write(bytes)
    expect((await it.reply()).text).toMatch(reply)
    expect(await it.say("NOOP")).toStartWith("250 ")
  })

  test("a word that a reply repeats cannot write a line of its own", async () => {
    using it = await toInbound()
    await it.say("EHLO me.test")
    for (const line of [
      "MAIL FROM:<a+0D+0A250@b.test>",
      "EHLO a%0d%0a250",
      "MAIL FROM:<a@b.test> X=+0D+0A",
    ]) {
      await it.say(line)
    }
    const lines = it.said.split("\r\n")
    expect(lines.filter((line) => line !== "" && !/^\d{3}[ -]/.test(line))).toEqual([])
    expect(it.said.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/)
  })
})

describe("a flood", () => {
  test("of recipients at the instance ends with the session, and takes nothing", async () => {
    const before = await taken()
    using it = await toInbound()
    await it.talk("EHLO me.test", "MAIL FROM:<>")
    it.write(
      Array.from({ length: 5000 }, (_, at) => `RCPT TO:<u${at}@elsewhere.test>\r\n`).join(""),
    )
    await it.end()
    const refusals = it.said.split("\r\n").filter((line) => line.startsWith("550 5.7.1 "))
    expect(refusals.length).toBeLessThanOrEqual(101)
    expect(it.said).toContain("\r\n421 4.7.0 rate_limit_exceeded: ")
    await expectUnharmed(before)
  })

  test("of recipients of ours is cut at 100, and a mail to those has 100 rows", async () => {
    using it = await toInbound()
    await it.talk("EHLO me.test", "MAIL FROM:<>")
    it.write(Array.from({ length: 300 }, (_, at) => `RCPT TO:<u${at}@${domain}>\r\n`).join(""))
    const codes: number[] = []
    for (let at = 0; at < 300; at++) codes.push((await it.reply()).code)
    expect([
      codes.filter((code) => code === 250).length,
      codes.filter((code) => code === 452).length,
    ]).toEqual([100, 200])
    await it.say("DATA")
    it.write("Subject: x\r\n\r\nx\r\n.\r\n")
    const { lines } = await it.reply()
    expect(lines.join(" ").match(/[0-9a-f-]{36}/g)).toHaveLength(100)
  })

  test("of commands without a mail ends", async () => {
    using it = await toInbound()
    await it.say("EHLO me.test")
    it.write("NOOP\r\n".repeat(20_000))
    await it.end()
    expect(it.said).toEndWith(")\r\n")
    expect(it.said).toContain("421 4.7.0 rate_limit_exceeded: ")
    expect(it.said.match(/^250 /gm)?.length).toBeLessThan(10_010)
  })

  test("of commands before a login ends sooner", async () => {
    using it = await toSubmission()
    it.write("NOOP\r\n".repeat(1000))
    await it.end()
    expect(it.said.match(/^250 /gm)?.length ?? 0).toBeLessThan(25)
  })

  test("of addresses costs no look at all of them", () => {
    const limits = new ClientLimits({ per_address: 1, per_minute: 60 })
    for (let at = 0; at < 100_000; at++) {
      const free = limits.admit(`10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`)
      if (typeof free === "string") throw new Error(free)
      free()
    }
  })
})

describe("a PROXY header of a client that is no proxy", () => {
  const binary = Buffer.from("0d0a0d0a000d0a515549540a2111000cc0000208c6336401dc040019", "hex")
  const headers: [string, string | Buffer][] = [
    ["version 1", "PROXY TCP4 192.0.2.1 198.51.100.1 5000 25\r\n"],
    ["version 1, unknown", "PROXY UNKNOWN\r\n"],
    ["version 2", binary],
  ]

  test.each(headers)(
    "%s: the session ends, or it says nothing of the address",
    async (_, header) => {
      using early = SmtpDialogue.connect(inbound.server.port, {
        local: nextAddress(),
        first: header,
      })
      expect(await early.end()).toMatch(/^(?:421 4\.7\.0|550 5\.5\.2) /)
      using late = await toInbound()
      late.write(header)
      expect((await late.reply()).text).toMatch(/^5\d\d 5\.5\.2 /)
    },
  )
})

describe.skipIf(missing("openssl"))("openssl s_client", () => {
  const connect = async (words: string[]) => {
    const cmd = [locate("openssl") ?? "", "s_client", "-connect", ...words]
    // Its own rules would refuse the old versions before the server is asked.
    const child = Bun.spawn({ cmd, stdin: Buffer.from("QUIT\r\n"), stdout: "pipe", stderr: "pipe" })
    const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
    await child.exited
    return out + errors
  }
  const old = ["-cipher", "ALL:@SECLEVEL=0"]
  const starttls = ["-starttls", "smtp"]
  const places = () => ({
    25: [`127.0.0.1:${inbound.server.port}`, ...starttls],
    587: [`127.0.0.1:${submission.port}`, ...starttls],
    465: [`127.0.0.1:${submission.implicit_port}`],
  })

  test.each([25, 587, 465] as const)(
    "TLS 1.0 and 1.1 are refused on %p, 1.2 and 1.3 are not",
    async (port) => {
      for (const version of ["-tls1", "-tls1_1"]) {
        const said = await connect([...places()[port], version, ...old])
        expect([version, said]).toEqual([
          version,
          expect.stringMatching(
            /alert protocol version|no protocols available|unsupported protocol|unexpected eof/,
          ),
        ])
        expect(said).toMatch(/Cipher is \(NONE\)/)
      }
      for (const [flag, name] of [
        ["-tls1_2", "TLSv1.2"],
        ["-tls1_3", "TLSv1.3"],
      ] as const) {
        expect(await connect([...places()[port], flag])).toMatch(
          new RegExp(`New, ${name}, Cipher is [A-Z]`),
        )
      }
    },
  )

  test("weak ciphers are refused", async () => {
    for (const cipher of ["NULL", "aNULL", "EXP", "RC4", "3DES", "MD5"]) {
      const said = await connect([...places()[587], "-tls1_2", "-cipher", `${cipher}:@SECLEVEL=0`])
      expect([cipher, said]).toEqual([cipher, expect.not.stringMatching(/Cipher is [A-Z]/)])
    }
  })
})
