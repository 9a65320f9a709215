import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { jobs } from "../../src/jobs/tables"
import { messages } from "../../src/messages/tables"
import type { ProviderFeedback } from "../../src/providers/callbacks"
import { type Team, team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { sizes } from "../harness/sizes"
import { addText, eventsOf, NUMBER, OURS, read, sent, tell, typesOf } from "./told"

quietLog()
const service = await testService()
const { store } = service
afterAll(() => service[Symbol.asyncDispose]())

const SECRET = "a-signature-secret-of-the-account"
const TOKEN = "a-token-that-signs-callbacks"
const FORM = "application/x-www-form-urlencoded"
const ACCESS = {
  vonage: { api_key: "abcd1234", api_secret: "an-api-secret", signature_secret: SECRET },
  plivo: { auth_id: "MAXXXXXXXXXXXXXXXXXX", auth_token: TOKEN },
}

type Provider = keyof typeof ACCESS

/** A project with both providers. */
interface Home extends Team {
  callbacks: Record<Provider, string>
}

async function home(): Promise<Home> {
  const made = await team(service)
  const here = { "x-account-id": made.account_id, "x-project-id": made.project_id }
  const configured = async (provider: Provider) => {
    const config = { provider, credentials: ACCESS[provider] }
    const path = "/v1/providers/sms_provider/config"
    const { body } = await made.owner.post(path, config, here)
    return body.data.callback_url as string
  }
  const callbacks = { vonage: await configured("vonage"), plivo: await configured("plivo") }
  return { ...made, callbacks }
}

let ours: Home
let theirs: Home

beforeAll(async () => {
  ours = await home()
  theirs = await home()
})

type Fields = Record<string, string>

interface Call {
  provider?: Provider
  /** The address, where it is another one. */
  url?: string
  /** Changes what was signed. */
  forge?: (body: string) => string
  secret?: string
}

/** What Vonage signs is its fields; what Plivo signs is the address, too. */
function signedBy(provider: Provider, url: string, fields: Fields, secret: string) {
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))
  const mac = (text: string) => createHmac("sha256", secret).update(text)
  if (provider === "vonage") {
    const told = sorted.map(([name, value]) => `&${name}=${value.replace(/[&=]/g, "_")}`).join("")
    return { fields: { ...fields, sig: mac(told).digest("hex") }, headers: {} }
  }
  const told = sorted.map(([name, value]) => name + value).join("")
  const signature = mac(`${url}${url.includes("?") ? "." : "?"}${told}.7`).digest("base64")
  const headers = { "x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": "7" }
  return { fields, headers }
}

/** The status of the answer to a callback. */
async function call(fields: Fields, { provider = "vonage", ...more }: Call = {}): Promise<number> {
  const { url = ours.callbacks[provider], forge = (body) => body } = more
  const secret = more.secret ?? (provider === "vonage" ? SECRET : TOKEN)
  const signed = signedBy(provider, url, fields, secret)
  const body = forge(new URLSearchParams(signed.fields).toString())
  const headers = { ...signed.headers, "content-type": FORM }
  const { pathname, search } = new URL(url)
  const answer = await service.anybody.call("POST", pathname + search, { body, headers })
  return answer.status
}

/** Handles what was told; those that must wait stay. */
async function work() {
  const of = eq(jobs.name, "provider.feedback")
  for (const row of await store.read.select().from(jobs).where(of)) {
    const { retry } = (await tell(store, row.payload as ProviderFeedback)) as { retry?: string }
    if (retry === undefined) await store.tx((tx) => tx.delete(jobs).where(eq(jobs.id, row.id)))
  }
  return (await store.read.select().from(jobs).where(of)).length
}

/** A report as each of them writes it. */
const report = (provider: Provider, id: string, status: string): [Fields, Call] =>
  provider === "vonage"
    ? [{ messageId: newId(), "client-ref": id, status, "err-code": "6" }, {}]
    : [
        { MessageUUID: newId(), Status: status, ErrorCode: "30" },
        { provider, url: `${ours.callbacks.plivo}?id=${id}` },
      ]

const statusOf = async (id: string) => (await read(store, id)).status

/** A text that left by this provider. */
async function gone(provider: Provider, whose: Home = ours) {
  const id = await addText(store, whose)
  await sent(store, id, { provider })
  return id
}

const toldOf = async (id: string) => {
  const all = await eventsOf(store, ours, "sms.")
  return all.filter(({ subject_id }) => subject_id === id).map(({ type }) => type)
}

describe.each(["vonage", "plivo"] as const)("a report of %s", (provider) => {
  test("that repeats is answered each time, and counts once", async () => {
    const id = await gone(provider)
    for (const _ of [1, 2, 3]) expect(await call(...report(provider, id, "delivered"))).toBe(200)
    expect(await work()).toBe(0)
    expect(await call(...report(provider, id, "delivered"))).toBe(200)
    await work()
    expect(await toldOf(id)).toEqual(["sms.queued", "sms.sent", "sms.delivered"])
  })

  test("that comes late, or contradicts the last one, changes nothing", async () => {
    const id = await gone(provider)
    for (const status of ["delivered", provider === "vonage" ? "buffered" : "sent", "failed"]) {
      await call(...report(provider, id, status))
      await work()
    }
    expect([await statusOf(id), await toldOf(id)]).toEqual([
      "delivered",
      ["sms.queued", "sms.sent", "sms.delivered"],
    ])
  })

  test("that overtakes the end of the attempt waits for it", async () => {
    const id = await addText(store, ours)
    expect(await call(...report(provider, id, "delivered"))).toBe(200)
    expect(await work()).toBe(1)
    await sent(store, id, { provider })
    expect([await work(), await statusOf(id)]).toEqual([0, "delivered"])
  })

  test("of a text of another project changes nothing there", async () => {
    const id = await gone(provider, theirs)
    expect(await call(...report(provider, id, "failed"))).toBe(200)
    await work()
    expect(await statusOf(id)).toBe("sent")
    await store.tx((tx) => tx.delete(jobs).where(eq(jobs.name, "provider.feedback")))
  })

  test.each<[string, (url: string) => Call]>([
    ["with another body", () => ({ forge: (body) => body.replace("delivered", "expired") })],
    ["with one field more", () => ({ forge: (body) => `${body}&x=1` })],
    ["without a signature", () => ({ forge: () => "messageId=1&status=delivered&Status=sent" })],
    ["with another secret", () => ({ secret: "another" })],
    ["with another token", (url) => ({ url: url.replace(/[\w-]{43}/, "A".repeat(43)) })],
    ["with a token that is none", (url) => ({ url: url.replace(/[\w-]{43}/, "token") })],
    ["at another provider", (url) => ({ url: url.replace(`/${provider}/`, "/twilio/") })],
    ["at another channel", (url) => ({ url: url.replace("/sms/", "/email/") })],
  ])("%s is refused, and nothing is kept", async (_, forged) => {
    const [fields, asked] = report(provider, await gone(provider), "delivered")
    const url = asked.url ?? ours.callbacks[provider]
    expect(await call(fields, { ...asked, ...forged(url) })).toBe(401)
    expect(await work()).toBe(0)
  })

  test("that is huge is refused, and a large text that comes twice is kept once", async () => {
    const text = "x".repeat(300_000)
    const inbound =
      provider === "vonage"
        ? { messageId: newId(), msisdn: NUMBER.slice(1), to: OURS.slice(1), text }
        : { MessageUUID: newId(), From: NUMBER.slice(1), To: OURS.slice(1), Text: text }
    expect(await call(inbound, { provider })).toBe(413)
    const name = provider === "vonage" ? "text" : "Text"
    const large = { ...inbound, [name]: text.slice(0, 200_000) }
    for (const _ of [1, 2]) expect(await call(large, { provider })).toBe(200)
    await work()
    const came = store.read.select().from(messages).where(eq(messages.project_id, ours.project_id))
    const received = (await came).filter((one) => one.status === "received")
    const [first] = received.filter((one) => one.provider === provider)
    expect(first).toMatchObject({ address: NUMBER, sender: OURS })
    expect(received.filter((one) => one.provider === provider)).toHaveLength(1)
  })
})

test("reports in any order end once, and only the first end counts", async () => {
  const words = ["accepted", "buffered", "delivered", "expired", "failed", "rejected", "unknown"]
  for (let round = 0; round < sizes.report_orders; round++) {
    const id = await gone("vonage")
    const order = Array.from({ length: 5 }, (_, i) => words[(round * 31 + i * i * 7) % 7] ?? "")
    for (const word of order) {
      await call(...report("vonage", id, word))
      await work()
    }
    const last = order.find((word) => !/accepted|buffered|unknown/.test(word))
    const status = last === undefined ? "sent" : last === "delivered" ? last : "undelivered"
    const ends = status === "sent" ? [] : [`sms.${status}`]
    expect([order, await statusOf(id), await toldOf(id)]).toEqual([
      order,
      status,
      ["sms.queued", "sms.sent", ...ends],
    ] as never)
  }
})

test("nothing of all this reached the other project", async () => {
  expect(new Set(await typesOf(store, theirs, "sms."))).toEqual(new Set(["sms.queued", "sms.sent"]))
})
