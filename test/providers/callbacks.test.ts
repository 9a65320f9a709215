import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { secondsFromNow, sleep } from "../../src/core/time"
import { readNotification } from "../../src/emails/providers/ses/notification"
import type { SnsEnvelope } from "../../src/emails/providers/ses/sns"
import { jobs } from "../../src/jobs/tables"
import { sesServer } from "../fakes/ses-server"
import { authority, HOST, signedBy, snsServer } from "../fakes/sns"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { LOOPBACK, testFailover } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"

quietLog()
const clock = movableClock()

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
const { ca, issue } = authority()
const signer = issue()
const others = {
  "another name": issue({ name: "example.com" }),
  "a certificate of its own": issue({ alone: true }),
  "an authority for a signer": issue({ is_ca: true }),
}
const pathOf = (name: string) => `/${name.replaceAll(" ", "-")}.pem`
const sns = snsServer(signer, {
  "/signer.pem": signer.cert,
  ...Object.fromEntries(Object.entries(others).map(([name, { cert }]) => [pathOf(name), cert])),
})
let sent = 0
const amazon = sesServer(SECRET, () => {
  sent++
  return { status: 200, body: { MessageId: `ses-${sent}` } }
})
const resolver = { a: async () => ["127.0.0.1"], aaaa: async () => [] }
const service = await testService({
  providers: {
    settings: { "providers.ses.endpoint": amazon.url },
    network: { ca, allow_private: LOOPBACK, port: sns.port, resolver },
  },
})

let home: Team
let callback: string

beforeAll(async () => {
  home = await team(service)
  callback = await configured(home)
})

afterAll(async () => {
  sns[Symbol.dispose]()
  amazon[Symbol.dispose]()
  await service[Symbol.asyncDispose]()
})

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

async function configured(whose: Team): Promise<string> {
  const credentials = {
    region: "eu-west-1",
    access_key_id: "AKIDEXAMPLE000000000",
    secret_access_key: SECRET,
  }
  const config = { provider: "ses", credentials }
  const path = "/v1/providers/email_provider/config"
  const { body } = await whose.owner.post(path, config, here(whose))
  return new URL(body.data.callback_url).pathname
}

/** As SNS does it, which calls its JSON plain text. */
const post = (envelope: SnsEnvelope, path = callback) =>
  service.anybody.call("POST", path, {
    body: JSON.stringify(envelope),
    headers: { "content-type": "text/plain; charset=UTF-8" },
  })

async function workOff(isOver: () => Promise<boolean>) {
  const { parts, store } = service
  const provider = testFailover(store, parts.open_providers)
  const channels = channelTable({ ...parts, provider, sandbox: undefined, concurrency: 4 })
  const work = workOf(parts, channels, parts)
  const alone = engine === "sqlite"
  const loop = new WorkLoops({ store, work, concurrency: 4, lease_ms: 30_000, alone })
  await loop.start()
  while (!(await isOver())) await sleep(5)
  await loop.stop(5_000)
}

async function write(fields: Record<string, unknown> = {}) {
  const { body } = await home.owner.post("/v1/emails", mail(fields), here(home))
  return body.id as string
}

const read = async (id: string) => (await home.owner.get(`/v1/emails/${id}`, here(home))).body.data

const becomes = (id: string, status: string) => async () => (await read(id)).status === status

/** A mail that SES took; returns both of its ids. */
async function handedOver(to: string) {
  const id = await write({ to })
  await workOff(becomes(id, "sent"))
  return { id, messageId: `ses-${sent}` }
}

const note = (messageId: string, told: object) =>
  JSON.stringify({ mail: { messageId, destination: ["ann@example.test"] }, ...told })

const UNKNOWN = "550 5.1.1 user unknown"

const bounce = (
  bounceType: string,
  bounceSubType: string,
  { emailAddress = "Ann@Example.test", said = UNKNOWN } = {},
) => ({
  notificationType: "Bounce",
  bounce: {
    bounceType,
    bounceSubType,
    bouncedRecipients: [{ emailAddress, status: "5.1.1", diagnosticCode: `smtp; ${said}` }],
  },
})

const deliveryTo = (address: string) => ({
  eventType: "Delivery",
  delivery: { recipients: [address], smtpResponse: "250 2.0.0 OK" },
})
const delivery = deliveryTo("ann@example.test")

const complaintOf = (emailAddress: string) => ({
  notificationType: "Complaint",
  complaint: { complaintFeedbackType: "abuse", complainedRecipients: [{ emailAddress }] },
})

test.each(["1", "2"] as const)(
  "a bounce, signed in version %s, bounces the mail",
  async (version) => {
    const to = `bounced-${version}@example.test` // a permanent bounce suppresses its address
    const { id, messageId } = await handedOver(to)
    const told = bounce("Permanent", "NoEmail", {
      emailAddress: `Bounced-${version}@Example.test`,
    })
    const Message = note(messageId, told)
    const { status, body } = await post(signedBy(signer, { Message }, version))
    expect([status, body.data]).toEqual([200, { received: true }])
    await workOff(becomes(id, "bounced"))
    const { events } = (await home.owner.get(`/v1/emails/${id}/events`, here(home))).body.data
    expect(events.at(-1)).toMatchObject({
      type: "email.bounced",
      recipient_email: to,
      bounce_type: "Permanent",
      bounce_subtype: "NoEmail",
      detail: { smtp_code: 550, enhanced_code: "5.1.1", response: "550 5.1.1 user unknown" },
    })
  },
)

test("a delivery, then a complaint; the same delivery again changes nothing", async () => {
  const to = "complainer@example.test"
  const { id, messageId } = await handedOver(to)
  const delivered = note(messageId, deliveryTo(to))
  await post(signedBy(signer, { Message: delivered }))
  await workOff(becomes(id, "delivered"))
  await post(signedBy(signer, { Message: delivered, Subject: "Amazon SES" }))
  await post(signedBy(signer, { Message: note(messageId, complaintOf(to)) }))
  await workOff(becomes(id, "complained"))
  const { events } = (await home.owner.get(`/v1/emails/${id}/events`, here(home))).body.data
  const types = events.map(({ type }: { type: string }) => type)
  expect(types).toEqual(["email.queued", "email.sent", "email.delivered", "email.complained"])
})

test("a notification before its mail is known waits for it", async () => {
  const messageId = `ses-${sent + 1}`
  await post(signedBy(signer, { Message: note(messageId, delivery) }))
  const id = await write()
  await workOff(becomes(id, "delivered"))
})

test("a transient bounce is the end of the mail, and says that the address may be good", async () => {
  const { id, messageId } = await handedOver("ann@example.test")
  const full = bounce("Transient", "MailboxFull", { said: "452 4.2.2 over quota" })
  await post(signedBy(signer, { Message: note(messageId, full) }))
  await workOff(becomes(id, "bounced"))
  const { events } = (await home.owner.get(`/v1/emails/${id}/events`, here(home))).body.data
  expect(events.at(-1)).toMatchObject({
    type: "email.bounced",
    bounce_type: "Transient",
    bounce_subtype: "MailboxFull",
  })
  expect(await read(id)).toMatchObject({ status: "bounced", bounced_at: expect.any(String) })
})

test("an undetermined bounce is a transient one, of a kind that nobody knows", () => {
  const { bounce: told } = bounce("Undetermined", "Undetermined")
  const bouncedRecipients = [{ emailAddress: "ann@example.test" }]
  const unsaid = { notificationType: "Bounce", bounce: { ...told, bouncedRecipients } }
  expect(readNotification(note("ses-1", unsaid))?.notices).toMatchObject([
    { bounce_type: "Transient", bounce_subtype: "General" },
  ])
})

test.each([
  ["General", UNKNOWN, "NoEmail"],
  ["NoEmail", "550 5.1.1 wrote to too many recipients", "InfrastructureRejected"],
  ["General", "550 5.7.1 refused by policy", "PolicyRejected"],
  ["NoEmail", "550 no", "NoEmail"],
  ["Suppressed", UNKNOWN, "Suppressed"],
])("a bounce that SES calls %s, with the words %p, is %s", (kind, said, bounce_subtype) => {
  const told = readNotification(note("ses-1", bounce("Permanent", kind, { said })))
  expect(told?.notices).toMatchObject([{ bounce_subtype }])
})

test("a complaint of who complained before is a mail that was never sent", () => {
  const { complaint, ...rest } = complaintOf("ann@example.test")
  const again = {
    ...rest,
    complaint: { ...complaint, complaintSubType: "OnAccountSuppressionList" },
  }
  expect(readNotification(note("ses-1", again))?.notices).toMatchObject([
    { type: "bounced", bounce_type: "Permanent", bounce_subtype: "Suppressed" },
  ])
})

test("one of no mail of ours is forgotten after ten minutes", async () => {
  await post(signedBy(signer, { Message: note("ses-of-somebody-else", delivery) }))
  const kept = async () => {
    const rows = service.store.read.select().from(jobs)
    return rows.where(eq(jobs.name, "provider.feedback"))
  }
  await workOff(async () => ((await kept())[0]?.attempt ?? 0) > 0)
  expect(await kept()).toHaveLength(1)
  clock.advance({ seconds: 601 })
  await workOff(async () => (await kept()).length === 0)
})

test("who has another address for callbacks cannot touch a mail of this one", async () => {
  const { id, messageId } = await handedOver("ann@example.test")
  const foreign = await configured(await team(service))
  const Message = note(messageId, bounce("Permanent", "General"))
  expect((await post(signedBy(signer, { Message }), foreign)).status).toBe(200)
  await post(signedBy(signer, { Message: note(messageId, delivery) }))
  await workOff(becomes(id, "delivered"))
})

describe("refused, with one answer for all,", () => {
  const good = () => signedBy(signer, { Message: note("ses-1", delivery) })
  const url = (text: string) => () => signedBy(signer, { SigningCertURL: text })

  test.each<[string, () => SnsEnvelope]>([
    ["is a changed message", () => ({ ...good(), Message: note("ses-2", delivery) })],
    ["is a changed subject", () => ({ ...good(), Subject: "another" })],
    ["is another type under the same signature", () => ({ ...good(), Type: "UnsubscribeX" })],
    ["is a signature of an unknown version", () => ({ ...good(), SignatureVersion: "3" })],
    ["is no signature", () => ({ ...good(), Signature: "" })],
    ["is a certificate over http", url(`http://${HOST}/signer.pem`)],
    ["is a certificate from elsewhere", url("https://sns.eu-west-1.amazonaws.com.evil.test/a.pem")],
    ["is one from a bucket", url("https://s3.amazonaws.com/bucket/signer.pem")],
    ["is one from another service", url("https://sqs.eu-west-1.amazonaws.com/signer.pem")],
    ["is one behind a user name", url(`https://${HOST}@evil.test/signer.pem`)],
    ["is one at another port", url(`https://${HOST}:8443/signer.pem`)],
    ["is one that is not there", url(`https://${HOST}/none.pem`)],
    ["is one that is no certificate", url(`https://${HOST}/signer`)],
    ...Object.entries(others).map(([name, own]): [string, () => SnsEnvelope] => [
      `is ${name}`,
      () => signedBy(own, { SigningCertURL: `https://${HOST}${pathOf(name)}` }),
    ]),
  ])("%s", async (_, envelope) => {
    const { status, body } = await post(envelope())
    expect([status, body.error.code]).toEqual([401, "unauthorized"])
  })

  test.each([-25, 25])("is one that was said %d hours from now", async (hours) => {
    const Timestamp = secondsFromNow(hours * 3600)
    const envelope = signedBy(signer, { Message: note("ses-1", delivery), Timestamp })
    expect((await post(envelope)).status).toBe(401)
  })

  test.each([
    "arn:aws:sns:eu-west-1:999999999999:belfry",
    "arn:aws:sqs:eu-west-1:123456789012:belfry",
    "belfry",
  ])("is the topic %s, though SNS signed it", async (TopicArn) => {
    await post(good()) // the account that spoke first
    const foreign = signedBy(signer, { Message: note("ses-1", delivery), TopicArn })
    expect((await post(foreign)).status).toBe(401)
    expect((await post(good())).status).toBe(200)
  })

  test("is another account's topic until the credentials are replaced", async () => {
    const own = await team(service)
    const path = await configured(own)
    const of = (account: string) =>
      signedBy(signer, { TopicArn: `arn:aws:sns:eu-west-1:${account}:any` })
    expect((await post(of("111111111111"), path)).status).toBe(200)
    const [config] = (await own.owner.get("/v1/providers", here(own))).body.data
    expect(config.settings).toEqual({})
    const one = `/v1/providers/email_provider/config/${config.id}`
    await own.owner.patch(one, { settings: { max_per_second: 9 } }, here(own))
    expect((await post(of("222222222222"), path)).status).toBe(401)
    await configured(own)
    expect((await post(of("222222222222"), path)).status).toBe(200)
    expect((await post(of("111111111111"), path)).status).toBe(401)
  })

  test("is a certificate that is over", async () => {
    clock.advance({ seconds: 2 * 86_400 })
    expect((await post(good())).status).toBe(401)
  })

  test.each([
    ["is an address that nobody has", (path: string) => path.replace(/.$/, "_")],
    ["is one of another provider", (path: string) => path.replace("/ses/", "/smtp/")],
    ["is one without a token", (path: string) => path.replace(/[^/]+$/, "x")],
  ])("%s", async (_, change) => {
    const { status, body } = await post(good(), change(callback))
    expect([status, body.error.code]).toEqual([401, "unauthorized"])
  })
})

test("the address is checked before the body is read", async () => {
  const wrong = callback.replace(/.$/, "_")
  for (const body of ["no JSON", {}, "[".repeat(100), { Type: 1 }]) {
    const refused = await service.anybody.post(wrong, body)
    expect([refused.status, refused.body.error.code]).toEqual([401, "unauthorized"])
  }
  expect((await service.anybody.post(callback, "no JSON")).status).toBe(400)
  expect((await service.anybody.post(callback, {})).status).toBe(422)
})

test("guesses of an address are counted, as those of every credential", async () => {
  clock.freeze() // no minute ends while we count
  await using own = await testService({ trusted_proxies: ["127.0.0.1"] })
  const from = (address: string) => ({ "x-forwarded-for": address })
  const guess = (address: string) =>
    own.anybody.post(`/v1/callbacks/email/ses/${"g".repeat(43)}`, {}, from(address))
  const statuses = new Map<number, number>()
  for (let n = 0; n < 310; n++) {
    const { status } = await guess("192.0.2.7")
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect([...statuses]).toEqual([
    [401, 300],
    [429, 10],
  ])
  expect((await guess("192.0.2.8")).status).toBe(401)
})

describe("a subscription", () => {
  const SubscribeURL = `https://${HOST}/?Action=ConfirmSubscription&Token=abc`
  const fields = { Type: "SubscriptionConfirmation", Token: "abc", Message: "You have chosen" }

  test("is confirmed", async () => {
    const { status } = await post(signedBy(signer, { ...fields, SubscribeURL }))
    expect(status).toBe(200)
    expect(sns.asked).toContain("/?Action=ConfirmSubscription&Token=abc")
  })

  test("at another place is not, though the signature is right", async () => {
    const before = sns.asked.length
    const elsewhere = { ...fields, SubscribeURL: "https://evil.test/?Action=ConfirmSubscription" }
    expect((await post(signedBy(signer, elsewhere))).status).toBe(401)
    expect(sns.asked.slice(before).filter((path) => path.includes("Confirm"))).toEqual([])
  })

  test("that SNS does not confirm is told to it as an error, so that it asks again", async () => {
    const odd = { ...fields, SubscribeURL: `https://${HOST}/none` }
    const { status, body } = await post(signedBy(signer, odd))
    expect([status, body.error.code]).toEqual([502, "provider_error"])
  })
})

test("what is no notification is answered and changes nothing", async () => {
  for (const Message of ["Hello", "[]", '{"mail":{}}', note("ses-1", { eventType: "Open" })]) {
    expect((await post(signedBy(signer, { Message }))).status).toBe(200)
  }
})
