import { describe, expect, test } from "bun:test"
import { GetAccountCommand, SESv2Client, SendEmailCommand } from "@aws-sdk/client-sesv2"
import { ses, sesProvider } from "../../../src/emails/providers/ses"
import type { SesAccess } from "../../../src/emails/providers/ses/api"
import { mailTo, RAW } from "../../contracts/email-provider"
import { providerContract } from "../../contracts/provider"
import { sesServer } from "../../fakes/ses-server"
import { testContext } from "../../harness/providers"
import { refusal } from "../../store/facts"

const access: SesAccess = {
  region: "eu-central-1",
  access_key_id: "AKIDEXAMPLE000000000",
  secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  configuration_set: "belfry-events",
}

const at = (endpoint: string, own = access) =>
  ses({ access: own, endpoint: { url: endpoint, ca: undefined } })

const sdk = (endpoint: string) =>
  new SESv2Client({
    region: access.region,
    endpoint,
    maxAttempts: 1,
    credentials: {
      accessKeyId: access.access_key_id,
      secretAccessKey: access.secret_access_key,
    },
  })

const ANN = "ann@example.test"
const mail = mailTo(ANN, "bob@example.test")

describe("beside the AWS SDK, for the same input,", () => {
  test("a mail is the same request: method, path, payload, scope, and a right signature", async () => {
    using server = sesServer(access.secret_access_key)
    await at(server.url).send(mail)
    await sdk(server.url).send(
      new SendEmailCommand({
        Destination: { ToAddresses: mail.to },
        Content: { Raw: { Data: Buffer.from(RAW) } },
        EmailTags: [{ Name: "belfry_message_id", Value: mail.message_id }],
        ConfigurationSetName: access.configuration_set,
      }),
    )
    const [ours, theirs] = server.requests
    if (!ours || !theirs) throw new Error("one of the two did not come")
    expect([theirs.is_signed, ours.is_signed]).toEqual([true, true])
    expect([ours.method, ours.path, ours.scope]).toEqual([theirs.method, theirs.path, theirs.scope])
    expect(JSON.parse(ours.body)).toEqual(JSON.parse(theirs.body))
    expect(ours.headers.get("content-type")).toBe(theirs.headers.get("content-type"))
    for (const name of ["host", "x-amz-date"]) expect(ours.signed_headers).toContain(name)
    expect(Buffer.from(JSON.parse(ours.body).Content.Raw.Data, "base64").toString()).toBe(RAW)
  })

  test("so is the question whether the credentials are good", async () => {
    using server = sesServer(access.secret_access_key, () => ({
      status: 200,
      body: { SendingEnabled: true, ProductionAccessEnabled: false, SendQuota: {} },
    }))
    expect(await at(server.url).check?.()).toContain("SES accepts the credentials")
    await sdk(server.url).send(new GetAccountCommand({}))
    const [ours, theirs] = server.requests
    expect([theirs?.is_signed, ours?.is_signed]).toEqual([true, true])
    expect([ours?.method, ours?.path]).toEqual([theirs?.method, theirs?.path])
  })

  test("a wrong secret shows: the check of signatures is one", async () => {
    using server = sesServer("another secret")
    await at(server.url).send(mail)
    expect(server.requests[0]?.is_signed).toBe(false)
  })
})

test("what SES takes is sent, under the id that its notifications will name", async () => {
  using server = sesServer(access.secret_access_key)
  const outcome = await at(server.url).send(mail)
  expect(outcome).toMatchObject({
    address: ANN,
    status: "sent",
    provider: "ses",
    provider_message_id: "ses-1",
    others: [{ address: "bob@example.test", status: "sent" }],
    reply: { response: "200 ses-1", mx: new URL(server.url).host },
  })
  expect(JSON.stringify(outcome)).not.toContain(access.secret_access_key)
})

test("a message that could be a command never leaves", async () => {
  using server = sesServer(access.secret_access_key)
  const raw = Buffer.from(`${RAW}\n.\n`)
  expect((await at(server.url).send({ ...mail, raw })).status).toBe("failed")
  expect(server.requests).toEqual([])
})

type Said = [code: string, http: number, status: string, fault: string | undefined, said?: string]

test.each<Said>([
  ["TooManyRequestsException", 429, "retry", "infrastructure"],
  ["ThrottlingException", 400, "retry", "infrastructure"],
  ["LimitExceededException", 400, "retry", "infrastructure"],
  ["ServiceUnavailable", 503, "retry", "infrastructure"],
  ["InternalFailure", 500, "retry", undefined],
  ["MessageRejected", 400, "bounced", undefined, "Email contains a virus"],
  ["MessageRejected", 400, "failed", "infrastructure", "Email address is not verified."],
  ["MailFromDomainNotVerifiedException", 400, "failed", "infrastructure"],
  ["BadRequestException", 400, "failed", undefined],
  ["NotFoundException", 404, "failed", "authentication"],
  ["AccountSuspendedException", 400, "failed", "authentication"],
  ["SendingPausedException", 400, "failed", "authentication"],
  ["AccessDeniedException", 403, "failed", "authentication"],
  ["InvalidClientTokenId", 403, "failed", "authentication"],
  ["SignatureDoesNotMatch", 403, "failed", "authentication"],
  ["UnrecognizedClientException", 403, "failed", "authentication"],
  ["ExpiredTokenException", 403, "failed", "authentication"],
  ["SomethingNew", 403, "failed", "authentication"],
  ["SomethingNew", 400, "failed", undefined],
  ["SomethingNew", 502, "retry", undefined],
])("%s (%d) comes to %s", async (code, http, status, fault, message = "no") => {
  const answers = [
    { status: http, body: { message }, headers: { "x-amzn-errortype": `${code}:http://x/` } },
    { status: http, body: { __type: `com.amazonaws.ses#${code}`, message } },
  ]
  using server = sesServer(access.secret_access_key, () => answers.shift())
  for (const _ of [1, 2]) {
    const outcome = await at(server.url).send(mail)
    expect([outcome.status, outcome.fault]).toEqual([status as "sent", fault as undefined])
    expect(outcome.reason).toBe(`${http} ${code}: ${message}`)
    expect(outcome.bounce_subtype).toBe(status === "bounced" ? "ContentRejected" : null)
  }
})

test("who is too fast is told to nobody, and comes again in a moment", async () => {
  using server = sesServer(access.secret_access_key, () => ({
    status: 429,
    body: { __type: "TooManyRequestsException", message: "Maximum sending rate exceeded." },
  }))
  const outcome = await at(server.url).send(mail)
  expect([outcome, ...outcome.others].map(({ held }) => held)).toEqual([true, true])
  expect(outcome.schedule(7, 3600)).toBeWithin(2, 10.1)
  expect(outcome.schedule(7, 49 * 3600)).toBeUndefined()
})

test("domains go as A-labels; an address that SES cannot write bounces alone", async () => {
  using server = sesServer(access.secret_access_key)
  const outcome = await at(server.url).send(mailTo("ann@münchen.de", "jörg@example.test"))
  const { Destination } = JSON.parse(server.requests[0]?.body ?? "{}")
  expect(Destination.ToAddresses).toEqual(["ann@xn--mnchen-3ya.de"])
  expect(outcome).toMatchObject({ address: "ann@münchen.de", status: "sent" })
  expect(outcome.others).toMatchObject([
    {
      address: "jörg@example.test",
      status: "bounced",
      bounce_subtype: "ContentRejected",
      reply: { enhanced_code: "5.6.7" },
    },
  ])
  const alone = await at(server.url).send(mailTo("jörg@example.test"))
  const whole = await at(server.url).send({ ...mail, smtputf8: true })
  expect([alone.status, whole.status]).toEqual(["bounced", "bounced"])
  expect(server.requests).toHaveLength(1)
})

test("nobody there is a fault of the connection, an answer that is no JSON is tried again", async () => {
  const gone = sesServer("")
  gone[Symbol.dispose]()
  const outcome = await at(gone.url).send(mail)
  expect([outcome.status, outcome.fault]).toEqual(["retry", "connection"])
  expect(await refusal(at(gone.url).check?.() ?? Promise.resolve())).toContain("127.0.0.1")

  using odd = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("<html>", { status: 502 }),
  })
  const answer = await at(`http://127.0.0.1:${odd.port}`).send(mail)
  expect([answer.status, answer.fault]).toEqual(["retry", undefined])
})

test("a paused account shows in the check", async () => {
  using server = sesServer(access.secret_access_key, () => ({
    status: 200,
    body: { SendingEnabled: false },
  }))
  expect(await refusal(at(server.url).check?.() ?? Promise.resolve())).toContain("paused sending")
})

providerContract(sesProvider, async () => {
  const server = sesServer(access.secret_access_key, ({ is_signed, body }) => {
    if (!is_signed) return { status: 403, body: { __type: "SignatureDoesNotMatch", message: "no" } }
    if (body.includes("later@")) return { status: 503, body: { message: "not now" } }
    if (!body.includes("no@")) return undefined
    return { status: 400, body: { __type: "MessageRejected", message: "a virus" } }
  })
  return {
    credentials: { ...access },
    context: testContext({ settings: { "providers.ses.endpoint": server.url } }),
    messages: {
      accepted: mailTo(ANN),
      deferred: mailTo("later@example.test"),
      refused: mailTo("no@example.test"),
    },
    success: "sent",
    leave: () => server[Symbol.dispose](),
    async [Symbol.asyncDispose]() {
      server[Symbol.dispose]()
    },
  }
})
