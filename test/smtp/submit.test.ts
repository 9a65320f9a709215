import { describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { count, eq } from "drizzle-orm"
import type { Blobs } from "../../src/core/blobs"
import { secondsFromNow } from "../../src/core/time"
import { idOf } from "../../src/domains/sending-domains"
import * as apiKeys from "../../src/identity/api-keys"
import { messages } from "../../src/messages/tables"
import { domainKeys } from "../emails/published-keys"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { type ProjectOptions, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { idsOf, replyOf, session, testSubmission } from "../harness/submission"

const service = await sharedService()
const { store } = service.parts
const { login, submit } = testSubmission(service)
const clock = movableClock()

const DAY = 86_400

type Stored = Awaited<ReturnType<Blobs["put"]>>

const letter = (fields = "", body = "Dong.\n") =>
  `From: Bell <bell@example.test>\nTo: Ann <ann@example.test>\nSubject: Ding\n${fields}\n${body}`

async function client(options: ProjectOptions = {}) {
  const project = await service.project(options)
  const one = await login(project.key)
  const send = (raw: string | Uint8Array, to: string | string[] = "ann@example.test", more = {}) =>
    submit(one, { raw, to, ...more })
  const get = async (id: string, rest = "") =>
    (await project.get(`/v1/emails/${id}${rest}`)).body?.data
  const stored = async () => {
    const ours = eq(messages.project_id, project.project_id)
    const [row] = await store.read.select({ n: count() }).from(messages).where(ours)
    return Number(row?.n)
  }
  return { ...project, session: one, send, find: get, stored }
}

test("one message is made for each recipient, under one batch_id, with the bytes shared", async () => {
  const { send, find, key_id } = await client()
  const raw = letter("Message-ID: <shared@client.test>\nX-Svc-Tag: bell\nX-Svc-Metadata-order: 7\n")
  const ids = idsOf(await send(raw, ["ann@example.test", "Ben@example.test", "ANN@example.test"]))
  expect(ids).toHaveLength(2)
  const [ann, ben] = await Promise.all(ids.map((id) => find(id)))
  expect(ann).toMatchObject({
    status: "queued",
    source: "smtp",
    rfc_message_id: "<shared@client.test>",
    from: { email: "bell@example.test", name: "Bell" },
    to: { email: "ANN@example.test", name: "Ann" },
    cc: [],
    bcc: [],
    subject: "Ding",
    text: "Dong.\n",
    html: null,
    tags: ["bell"],
    metadata: { order: "7" },
    idempotency_key: null,
    api_key_id: key_id,
  })
  expect(ben).toMatchObject({ to: { email: "Ben@example.test", name: null }, subject: "Ding" })
  expect(ben.batch_id).toBe(ann.batch_id)
  expect(ann.headers).toMatchObject({ to: "Ann <ann@example.test>" })
  expect(ann.headers).not.toHaveProperty("x-svc-tag")
})

test("X-Svc-Scheduled-At gives every recipient the time, and does not leave", async () => {
  const { send, find } = await client()
  const at = secondsFromNow(3600)
  const given = at.replace("Z", "+00:00")
  const raw = letter(`X-Svc-Scheduled-At: ${given}\nMessage-ID: <later@client.test>\n`)
  const ids = idsOf(await send(raw, ["ann@example.test", "ben@example.test"]))
  for (const id of ids) {
    const email = await find(id)
    expect(email).toMatchObject({ status: "queued", scheduled_at: at, timeline: [] })
    expect(email.headers).not.toHaveProperty("x-svc-scheduled-at")
  }
})

test("X-Svc-Template-Id takes the texts of a template, for each recipient", async () => {
  const { send, find, post } = await client()
  const fields = { name: "welcome", subject: "Hello {{name}}", html: "<p>{{name}}</p>" }
  const made = await post("/v1/templates", fields)
  const options = `X-Svc-Template-Id: welcome\nX-Svc-Variables: {"name":\n "Zoe"}\nX-Svc-Tag: t\n`
  const ids = idsOf(await send(letter(options), ["ann@example.test", "ben@example.test"]))
  expect(ids).toHaveLength(2)
  for (const id of ids) {
    expect(await find(id)).toMatchObject({
      subject: "Hello Zoe",
      html: "<p>Zoe</p>",
      tags: ["t"],
      source: "smtp",
      template: { id: made.body.data.id, name: "welcome", version: 1 },
    })
  }
  const missing = send(letter("X-Svc-Template-Id: welcome\n"), ["ann@example.test"])
  expect(await replyOf(missing)).toBe("554 5.6.0 template_render_failed")
})

const ATTACHED = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="=_b"

--=_b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: 8bit

Gr\xfc\xdfe
--=_b
Content-Type: application/octet-stream; name="a.bin"
Content-Disposition: attachment; filename="a.bin"
Content-Transfer-Encoding: base64

${"QUJD".repeat(19)}
--=_b--
`

describe.each([
  ["small, in the row", 1],
  ["large, as a file", 4_000],
])("a mail with an attachment, %s", (_, times) => {
  const attached = ATTACHED.replace(/(QUJD)+\n/, (lines) => lines.repeat(times))
  const raw = Buffer.from(
    `From: bell@example.test\nMessage-ID: <att-${times}@client.test>\nDate: today\n${attached}`.replaceAll(
      "\n",
      "\r\n",
    ),
    "latin1",
  )
  const content = Buffer.from("ABC".repeat(19 * times))
  const sha256 = createHash("sha256").update(content).digest("hex")

  test("is read part by part", async () => {
    const { send, find, get } = await client()
    const [id = ""] = idsOf(await send(raw))
    const email = await find(id)
    expect(email.text).toBe("Gr\xfc\xdfe")
    expect(email.attachments).toMatchObject([
      { filename: "a.bin", content_type: "application/octet-stream", size: content.length, sha256 },
    ])
    expect(await find(id, "/content")).toMatchObject({
      subject: "",
      text: "Gr\xfc\xdfe",
      html: null,
    })
    const file = await get(`/v1/emails/${id}/attachments/${email.attachments[0].id}`)
    expect(Buffer.from(file.bytes).equals(content)).toBe(true)
  })

  test("leaves with the bytes that were submitted, kept and sent again", async () => {
    const { send, post, get, project_id } = await client()
    const ids = idsOf(await send(raw, ["ann@example.test", "ben@example.test"]))
    const again = await post(`/v1/emails/${ids[0]}/resend`, { to: "eve@example.test" })
    expect(again.status).toBe(201)
    const all = await deliverAll(service)
    const handed = all.filter((mail) => mail.project_id === project_id)
    handed.sort((one, other) => (String(one.to) < String(other.to) ? -1 : 1))
    expect(handed.map(({ to }) => to)).toEqual([
      ["ann@example.test"],
      ["ben@example.test"],
      ["eve@example.test"],
    ])
    const bodies = handed.map((mail) => Buffer.from(mail.raw).toString("latin1"))
    const given = raw.toString("latin1")
    const [, end = ""] = /(MIME-Version.*)$/s.exec(given) ?? []
    for (const body of bodies) expect(body.endsWith(end)).toBe(true)
    expect(bodies[0]).toContain(`Message-ID: <att-${times}@client.test>\r\n`)
    expect(bodies[2]).toContain(`Message-ID: <${again.body.id}@example.test>\r\n`)
    for (const [at, id] of [...ids, again.body.id].entries()) {
      const kept = await service.parts.store.read.select().from(messages).where(eq(messages.id, id))
      expect(kept[0]?.envelope?.submitted?.sha256 === null).toBe(times === 1)
      const { bytes } = await get(`/v1/emails/${id}/raw`)
      expect(Buffer.from(bytes).toString("latin1")).toBe(bodies[at] ?? "")
    }
  })
})

test("a quoted local part is a recipient like any other", async () => {
  const { send, find } = await client()
  for (const to of ['"a b"@example.test', '"a..b"@example.test', '"a@c.test"@example.test']) {
    const [id = ""] = idsOf(await send(letter(`Cc: ${to}\n`), to))
    expect((await find(id)).to.email).toBe(to)
    const handed = await deliverAll(service)
    expect(handed.find(({ message_id }) => message_id === id)?.to).toEqual([to])
  }
  const [id = ""] = idsOf(await send(letter(), "a..c@example.test")) // as mail programs write it
  expect((await find(id)).to.email).toBe('"a..c"@example.test')
})

describe("a repetition", () => {
  test("with the same Message-ID is answered the first ids, for a day", async () => {
    const { send, stored } = await client()
    const raw = letter("Message-ID: <once@client.test>\n")
    const first = await send(raw)
    expect(await send(letter("Message-ID: <once@client.test>\nX-Try: 2\n"))).toBe(first)
    expect(await stored()).toBe(1)
    clock.advance({ seconds: DAY + 60 })
    const later = await send(raw)
    expect(later).not.toBe(first)
    expect(await send(raw)).toBe(later)
    expect(await stored()).toBe(2)
  })

  test("of a Message-ID with another subject or body is a new mail", async () => {
    const { send, stored } = await client()
    const id = "Message-ID: <always@client.test>\n"
    const both = ["ann@example.test", "ben@example.test"]
    const mails = [letter(id), letter(id, "Other.\n"), letter(id).replace("Ding", "Dong")]
    const first = await Promise.all(mails.map((raw) => send(raw, both)))
    expect(new Set(first.flatMap(idsOf)).size).toBe(6)
    expect(await Promise.all(mails.map((raw) => send(raw, both)))).toEqual(first)
    expect(await stored()).toBe(6)
  })

  test("with the same Idempotency-Key is one, whatever its Message-ID", async () => {
    const { send, find, stored } = await client()
    const first = await send(letter("Message-ID: <a@client.test>\nIdempotency-Key: order-7\n"))
    expect(await send(letter("Message-ID: <b@client.test>\nIdempotency-Key: order-7\n"))).toBe(
      first,
    )
    expect(await stored()).toBe(1)
    expect((await find(idsOf(first)[0] ?? "")).idempotency_key).toBe("order-7")
  })

  test("to further recipients makes messages for those alone", async () => {
    const { send, stored } = await client()
    const raw = letter("Message-ID: <grow@client.test>\n")
    const [ann = "", ben = ""] = idsOf(await send(raw, ["ann@example.test", "ben@example.test"]))
    const again = idsOf(await send(raw, ["eve@example.test", "BEN@example.test"]))
    expect(again[1]).toBe(ben)
    expect(again[0]).not.toBe(ann)
    expect(idsOf(await send(raw, "ann@example.test"))).toEqual([ann])
    expect(await stored()).toBe(3)
  })

  test("by another key of the project counts only where an Idempotency-Key says so", async () => {
    const { send, addKey, stored } = await client()
    const other = await login((await addKey()).key)
    const plain = letter("Message-ID: <keys@client.test>\n")
    const named = letter("Idempotency-Key: shared-9\n")
    const first = await send(named)
    await send(plain)
    expect(await submit(other, { raw: named, to: "ann@example.test" })).toBe(first)
    await submit(other, { raw: plain, to: "ann@example.test" })
    expect(await stored()).toBe(3)
  })

  test("without Message-ID is another mail", async () => {
    const { send, stored } = await client()
    expect(await send(letter())).not.toBe(await send(letter()))
    expect(await stored()).toBe(2)
  })

  test("at the same time is one, for one recipient and for several", async () => {
    const { send, stored } = await client()
    const one = letter("Message-ID: <race1@client.test>\n")
    const two = letter("Message-ID: <race2@client.test>\n")
    const both = ["ann@example.test", "ben@example.test"]
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, at) => (at % 2 ? send(one) : send(two, both))),
    )
    expect(new Set(answers).size).toBe(2)
    expect(await stored()).toBe(3)
  })
})

test("a header of another Belfry is removed, also where it stands twice", async () => {
  const { send, stored } = await client()
  await send(letter("X-Svc-Email-Id: 1\nX-Svc-Email-Id: 2\n"))
  expect(await stored()).toBe(1)
})

describe("refused", () => {
  const cases: [string, string, string][] = [
    [
      "a domain that is not verified",
      "550 5.7.1 domain_not_verified",
      "From: a@stranger.test\n\nx",
    ],
    ["two From headers", "554 5.6.0 validation_error", `From: a@example.test\n${letter()}`],
    ["an unknown template", "554 5.6.0 template_not_found", letter("X-Svc-Template-Id: welcome\n")],
    ["variables alone", "501 5.5.4 validation_error", letter("X-Svc-Variables: {}\n")],
    [
      "variables that are no JSON",
      "501 5.5.4 validation_error",
      letter("X-Svc-Template-Id: welcome\nX-Svc-Variables: {a}\n"),
    ],
    [
      "a template and a file",
      "501 5.5.4 validation_error",
      `From: bell@example.test\nX-Svc-Template-Id: welcome\n${ATTACHED}`,
    ],
    ["tracking by half", "501 5.5.4 validation_error", letter("X-Svc-Track-Opens: maybe\n")],
    [
      "two categories",
      "501 5.5.4 validation_error",
      letter("X-Svc-Category: news\nX-Svc-Category: offers\n"),
    ],
    [
      "two templates",
      "501 5.5.4 validation_error",
      letter("X-Svc-Template-Id: a\nx-svc-template-id: b\n"),
    ],
    ["a bad category", "501 5.5.4 validation_error", letter("X-Svc-Category: The News\n")],
    [
      "a late time",
      "501 5.5.4 validation_error",
      letter("X-Svc-Scheduled-At: 2099-01-01T00:00:00Z\n"),
    ],
    ["no time", "501 5.5.4 validation_error", letter("X-Svc-Scheduled-At: tomorrow\n")],
    ["a subscriber", "554 5.6.0 subscriber_not_found", letter("X-Svc-Subscriber-Id: 1\n")],
    ["a long tag", "501 5.5.4 validation_error", letter(`X-Svc-Tag: ${"x".repeat(101)}\n`)],
    ["too many tags", "501 5.5.4 validation_error", letter("X-Svc-Tag: a\n".repeat(11))],
    ["a bad key", "501 5.5.4 validation_error", letter("Idempotency-Key: a b\n")],
  ]
  test.each(cases)("%s: %s", async (_, reply, raw) => {
    const { send, stored } = await client()
    expect(await replyOf(send(raw))).toBe(reply)
    expect(await stored()).toBe(0)
  })

  test.each(["nobody", "a@", "@b.test", "a@b@c.test", "a b@c.test", `${"x".repeat(300)}@c.test`])(
    "the recipient %p: 501 5.1.3",
    async (to) => {
      const { send } = await client()
      expect(await replyOf(send(letter(), to))).toBe("501 5.1.3 validation_error")
    },
  )

  test("a decoded message over 10 MB, however it is encoded: 552 5.3.4", async () => {
    const { send, stored } = await client()
    const head = "From: bell@example.test\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    const line = `${"QUJD".repeat(19)}\r\n`
    const over = Buffer.from(head + line.repeat(Math.ceil(10_485_761 / 57)))
    expect(await replyOf(send(over))).toBe("552 5.3.4 payload_too_large")
    expect(await stored()).toBe(0)
    await send(over.subarray(0, over.length - 100 * line.length))
    expect(await stored()).toBe(1)
  })

  test("what the month has no room for: 452 4.2.2, at RCPT already", async () => {
    const { send, stored } = await client({ limits: { emails_per_month: 3 } })
    await send(letter())
    const four = ["a@example.test", "b@example.test", "c@example.test"]
    expect(await replyOf(send(letter(), four))).toBe("452 4.2.2 payment_required")
    expect(await stored()).toBe(1)
    await send(letter(), four.slice(1))
    expect(await replyOf(send(letter()))).toBe("452 4.2.2 payment_required")
    expect(await stored()).toBe(3)
  })

  test("all recipients for one, where the quota is used up meanwhile", async () => {
    const { key, send, stored } = await client({ limits: { emails_per_month: 3 } })
    const one = await login(key)
    const { handlers } = testSubmission(service)
    await handlers.onSender({ address: "", size: undefined }, one)
    const to = ["a@example.test", "b@example.test", "c@example.test"]
    for (const address of to) await handlers.onRecipient(address, one)
    await send(letter())
    const mail = { from: "", to, smtputf8: false, eight_bit: false }
    const raw = Buffer.from(letter("Message-ID: <all@client.test>\n").replaceAll("\n", "\r\n"))
    const received_at = new Date().toISOString()
    const late = handlers.onMail({ ...mail, raw, received_at }, one)
    expect(await replyOf(late)).toBe("452 4.2.2 payment_required")
    expect(await stored()).toBe(1)
    // Nothing was taken: the same mail to fewer recipients goes.
    await send(letter("Message-ID: <all@client.test>\n"), to.slice(0, 2))
    expect(await stored()).toBe(3)
  })

  test("more than the sends of a second: 451 4.7.1", async () => {
    clock.freeze()
    const { send, stored } = await client({ limits: { sends_per_second: 2 } })
    await send(letter(), ["a@example.test", "b@example.test"])
    expect(await replyOf(send(letter()))).toBe("451 4.7.1 rate_limited")
    clock.advance({ seconds: 1 })
    await send(letter())
    expect(await stored()).toBe(3)
  })

  test("more than the requests of a minute, those by HTTP included: 451 4.7.1", async () => {
    const { send, get, stored } = await client({ limits: { requests_per_minute: 3 } })
    await send(letter())
    await get("/v1/emails")
    await send(letter())
    expect(await replyOf(send(letter()))).toBe("451 4.7.1 rate_limited")
    expect(await stored()).toBe(2)
    clock.advance({ seconds: 61 })
    await send(letter())
  })

  test("a key that was revoked after the login, and the session ends", async () => {
    const { send, key_id, project_id } = await client()
    await send(letter())
    await store.tx((tx) => apiKeys.revoke(tx, project_id, key_id))
    expect(await replyOf(send(letter()))).toBe("535 5.7.8 unauthorized, and closes")
  })

  test("a session without a login: 530", async () => {
    const one = session()
    expect(await replyOf(submit(one, { raw: letter(), to: "a@example.test" }))).toBe(
      "530 5.7.0 unauthorized",
    )
  })

  test("a full disk: 452 4.3.1, and then it goes on", async () => {
    const { key } = await client()
    const { blobs } = service.parts
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
    const broken = { ...blobs, put: (_: Uint8Array) => Promise.reject<Stored>(full) }
    const off = testSubmission({ parts: { ...service.parts, blobs: broken } })
    const one = await off.login(key)
    const large = letter("", "x\n".repeat(50_000))
    const send = () => off.submit(one, { raw: large, to: "ann@example.test" })
    expect(await replyOf(send())).toBe("452 4.3.1 service_unavailable")
    broken.put = blobs.put
    await send()
  })

  test("a fault of our own: 451 4.3.0, without its words", async () => {
    const { key } = await client()
    const rules = {
      ...service.parts.rules,
      providerOf: () => Promise.reject(new Error("a secret path")),
    }
    const off = testSubmission({ parts: { ...service.parts, rules } })
    const one = await off.login(key)
    const send = off.submit(one, { raw: letter(), to: "ann@example.test" })
    const thrown = await send.catch((error: Error) => error)
    expect(await replyOf(Promise.reject(thrown))).toBe("451 4.3.0 internal_error")
    expect(String(thrown)).not.toContain("secret")
  })
})

test("the From domain decides, whatever Sender and the envelope say", async () => {
  const { send, find } = await client()
  const head =
    "From: bell@example.test\nSender: other@stranger.test\nResent-From: x@stranger.test\n"
  const [id = ""] = idsOf(await send(`${head}\nHi\n`, "ann@example.test", { from: "" }))
  expect(await find(id)).toMatchObject({ from: { email: "bell@example.test" }, status: "queued" })
})

test("a header in UTF-8 asks for SMTPUTF8, one in encoded words does not", async () => {
  await using own = await testService()
  const client = testSubmission(own)
  const one = await client.login((await own.project()).key)
  const raw = Buffer.from("From: bell@example.test\r\nSubject: Grüße\r\n\r\nx\r\n")
  await client.submit(one, { raw, to: "ann@example.test", smtputf8: true })
  await client.submit(one, { raw, to: "ben@example.test" })
  const asked = (await deliverAll(own)).map(({ to, smtputf8 }) => [to[0], smtputf8])
  expect(Object.fromEntries(asked)).toEqual({ "ann@example.test": true, "ben@example.test": false })
})

test("a key that is bound to a domain sends from no other: 550 5.7.1", async () => {
  const { account_id, project_id } = await client()
  const domain = "acme.test"
  await (await domainKeys(domain)).publish(service, project_id)
  const domain_id = await idOf(store.read, project_id, domain)
  const created_by = { type: "local" as const, id: null }
  const unlimited = { expires_at: null, ip_addresses: [] }
  const wanted = { name: "bound", scopes: ["email:send"], domain_id, ...unlimited }
  const owner = { account_id, project_id, created_by }
  const { key } = await store.tx((tx) => apiKeys.create(tx, owner, wanted))
  const bound = await login(key)
  await submit(bound, { raw: "From: a@acme.test\n\nx\n", to: "ann@example.test" })
  const other = submit(bound, { raw: letter(), to: "ann@example.test" })
  expect(await replyOf(other)).toBe("550 5.7.1 forbidden")
})

test("mail of the sandbox counts no quota", async () => {
  const { send, call, stored } = await client({ limits: { emails_per_month: 0 } })
  await call("PATCH", "/v1/settings", { body: { sandbox: true } })
  await send(letter(), ["a@example.test", "b@example.test"])
  expect(await stored()).toBe(2)
})
