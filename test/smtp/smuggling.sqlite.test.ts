import { afterAll, describe, expect, test } from "bun:test"
import { count, eq } from "drizzle-orm"
import { smtp } from "../../src/emails/providers/smtp"
import { inboundEmails } from "../../src/inbound/tables"
import { canonical } from "../../src/lib/mail-text"
import { contentOf, readTree } from "../../src/lib/mail-tree"
import { messages } from "../../src/messages/tables"
import { selfSigned } from "../fakes/smtp-certificate"
import { deliverBy } from "../harness/delivery"
import { addReceivingDomain } from "../harness/inbound-rows"
import { inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"
import { rawReceiver } from "./raw-receiver"
import { FORBIDDEN_ENDS, HARMLESS_ENDS, secondMail } from "./smuggling"

quietLog()

const service = await sharedService()
const { store } = service.parts
const inbound = await inboundServer(service)
const submission = await openSubmission(service)
afterAll(async () => {
  await inbound[Symbol.asyncDispose]()
  await submission[Symbol.asyncDispose]()
})

const project = await service.project()
const domain = await addReceivingDomain(store, project)

let clients = 0
/** Each client comes from an address of its own, so that no limit helps the tests to pass. */
const nextAddress = () => `127.7.${(clients >> 8) & 255}.${clients++ & 255}`

const RECIPIENT = "ann@example.test"
const EVIL = "evil@example.test"

/** A client that may say MAIL next. */
const WAYS = {
  "25, plain": async () => {
    const it = await SmtpDialogue.open(inbound.server.port, { local: nextAddress() })
    await it.say("EHLO me.test")
    return it
  },
  "25, STARTTLS": async () => {
    const it = await WAYS["25, plain"]()
    await it.starttls()
    await it.say("EHLO me.test")
    return it
  },
  "587, STARTTLS": async () => {
    const it = await SmtpDialogue.open(submission.port, { local: nextAddress() })
    await it.say("EHLO me.test")
    await it.starttls()
    await it.talk("EHLO me.test", plainLogin("svc", project.key))
    return it
  },
  "465, TLS": async () => {
    const options = { local: nextAddress(), implicit: true }
    const it = await SmtpDialogue.open(submission.implicit_port, options)
    await it.talk("EHLO me.test", plainLogin("svc", project.key))
    return it
  },
}

type Way = keyof typeof WAYS
const ALL_WAYS = Object.keys(WAYS) as Way[]
const isInbound = (way: Way) => way.startsWith("25")
const to = (way: Way, local: string) =>
  isInbound(way) ? `${local}@${domain}` : `${local}@example.test`

async function inData(way: Way, recipient = to(way, "ann")): Promise<SmtpDialogue> {
  const it = await WAYS[way]()
  const sender = isInbound(way) ? "a@elsewhere.test" : "bell@example.test"
  const reply = await it.talk(
    `MAIL FROM:<${sender}> BODY=8BITMIME`,
    `RCPT TO:<${recipient}>`,
    "DATA",
  )
  if (!reply.startsWith("354")) throw new Error(reply)
  return it
}

async function taken() {
  const [received] = await store.read.select({ all: count() }).from(inboundEmails)
  const [submitted] = await store.read.select({ all: count() }).from(messages)
  return { received: received?.all, submitted: submitted?.all }
}

/** So many clients at a time. */
async function forAll<Item>(items: Item[], work: (item: Item) => Promise<void>, most = 12) {
  const rest = [...items]
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: most }, worker))
}

/** Piece by piece, each in a packet of its own. */
async function trickle(it: SmtpDialogue, text: string) {
  for (const one of text) {
    if (it.closed) return
    it.write(one)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const HEAD = "From: bell@example.test\r\nSubject: first\r\n\r\nhi"

describe.each(ALL_WAYS)("a mail that comes by port %s", (way) => {
  test.each([
    ["in one piece", false],
    ["byte by byte", true],
  ])(
    "is one mail, or refused whole, where its end is one for others only (%s)",
    async (_, in_bytes) => {
      const before = await taken()
      await forAll(FORBIDDEN_ENDS, async (end) => {
        using it = await inData(way)
        const said = it.said.length
        it.write(HEAD)
        if (in_bytes) await trickle(it, end)
        else it.write(end)
        it.write(secondMail(to(way, "evil")))
        const is_mended = isInbound(way) && !end.includes("\0")
        if (is_mended) await it.talk("NOOP", "QUIT")
        await it.end()
        const answered = it.said.slice(said)
        const expected = is_mended
          ? /^250 2\.0\.0 .*\r\n250 .*\r\n221 .*\r\n$/
          : /^550 5\.5\.2 validation_error: .* \(req_[0-9a-f]{32}\)\r\n$/
        expect([end, answered]).toEqual([end, expect.stringMatching(expected)])
      })
      const { received = 0 } = before
      const more = isInbound(way) ? FORBIDDEN_ENDS.filter((end) => !end.includes("\0")).length : 0
      expect(await taken()).toEqual({ ...before, received: received + more })
    },
  )

  test("is one mail where a dot stands between other characters", async () => {
    const before = await taken()
    await forAll(HARMLESS_ENDS, async (end) => {
      using it = await inData(way)
      const said = it.said.length
      // What follows is text up to the end that is one.
      it.write(`${HEAD}${end}${secondMail(to(way, "evil"))}`)
      expect([end, (await it.reply()).text]).toEqual([end, expect.stringMatching(/^250 2\.0\.0 /)])
      await it.say("NOOP")
      const answers = it.said.slice(said).trim().split("\r\n")
      expect([end, answers]).toEqual([end, [expect.any(String), expect.stringMatching(/^250 /)]])
    })
    const after = await taken()
    const key = isInbound(way) ? "received" : "submitted"
    expect(after).toEqual({ ...before, [key]: (before[key] ?? 0) + HARMLESS_ENDS.length })
  })
})

test("nothing that was smuggled has a recipient", async () => {
  const smuggled = eq(inboundEmails.to_email, `evil@${domain}`)
  expect(await store.read.select().from(inboundEmails).where(smuggled)).toEqual([])
  const all = await store.read.select({ recipients: messages.recipients }).from(messages)
  expect(all.flatMap(({ recipients }) => recipients).map(({ email }) => email)).not.toContain(EVIL)
})

describe.each([false, true])("a mail that leaves (TLS: %p)", (has_tls) => {
  test("holds no end but its own, whatever its author wrote", async () => {
    const pair = selfSigned("relay.test")
    using relay = rawReceiver(has_tls ? pair : undefined)
    const forms = [...FORBIDDEN_ENDS, ...HARMLESS_ENDS]
    const texts = forms.map((end) => `hi${end}${secondMail(EVIL)}bye`)
    const sender = await service.project()
    for (const text of [...texts, texts.join("\r\n"), `.\r\n${texts[0]}`, "..", ".", "a\r\n."]) {
      const allowed = text.replaceAll("\0", "")
      const html = `<pre>${allowed}</pre>`
      const file = { filename: "a.txt", content: Buffer.from(text).toString("base64") }
      for (const body of [{ text: allowed }, { html }, { text: allowed, attachments: [file] }]) {
        const { status } = await sender.post("/v1/emails", mail({ to: RECIPIENT, ...body }))
        expect(status).toBe(201)
      }
    }
    const provider = smtp({
      host: "127.0.0.1",
      port: relay.port,
      tls: has_tls ? "implicit" : "none",
      ...(has_tls && { ca: pair.cert, servername: "relay.test" }),
    })
    await deliverBy(service.parts, provider)
    await provider.close()

    const stored = await store.read
      .select({ recipients: messages.recipients })
      .from(messages)
      .where(eq(messages.project_id, sender.project_id))
    expect(relay.mails.length).toBeGreaterThanOrEqual(stored.length)
    expect(relay.commands.filter((line) => /evil|smuggled/i.test(line))).toEqual([])
    const unknown = /^(?:EHLO|MAIL FROM:<(?:b\+|bell@)|RCPT TO:<|DATA$|RSET$|QUIT$|NOOP$)/
    expect(relay.commands.filter((line) => !unknown.test(line))).toEqual([])
    for (const wire of relay.mails) {
      expect(wire.replaceAll("\r\n", "")).not.toMatch(/[\r\n\0]/)
      expect(wire.split("\r\n").filter((line) => /^\.(?!\.)/.test(line))).toEqual([])
    }
    const [first] = texts
    const bodies = relay.mails.flatMap((wire) => {
      const raw = Buffer.from(wire.replace(/^\.\./gm, "."), "latin1")
      return readTree(raw).leaves.map((leaf) => canonical(contentOf(leaf).toString()).trimEnd())
    })
    expect(bodies).toContain(canonical(first ?? "").trimEnd())
  })
})
