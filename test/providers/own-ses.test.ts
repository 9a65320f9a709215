import { expect, test } from "bun:test"
import { channelTable, PROVIDERS } from "../../src/channels"
import { openProviders } from "../../src/compose-providers"
import { type Settings, settings } from "../../src/core/config"
import { sleep } from "../../src/core/time"
import { recordTargets, targetsOfProject } from "../../src/domains/expected-records"
import { sesProvider } from "../../src/emails/providers/ses"
import { instanceCallback, instanceId, openInstance } from "../../src/providers/health"
import { ownEmailProvider } from "../../src/providers/own-provider"
import { providerReceipts } from "../../src/providers/tables"
import { sesServer } from "../fakes/ses-server"
import { authority, signedBy, snsServer } from "../fakes/sns"
import { idFor } from "../harness/ids"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { LOOPBACK } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"

quietLog()

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
const { ca, issue } = authority()
const signer = issue()

const wanted = (endpoint: string): Settings => ({
  ...settings(),
  "delivery.provider": "ses",
  "providers.ses.region": "eu-west-1",
  "providers.ses.access_key_id": "AKIDEXAMPLE000000000",
  "providers.ses.secret_access_key": SECRET,
  "providers.ses.configuration_set": "belfry",
  "providers.ses.endpoint": endpoint,
})

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

/** As a start with these settings opens them; the callback route knows of it too. */
async function providersOf(service: TestService, endpoint: string) {
  const { store, parts } = service
  const { secrets, providers } = parts
  const opened = await openProviders(wanted(endpoint), {
    store,
    secrets,
    mode: "serve",
    mailbox_port: null,
    public_url: () => undefined,
  })
  providers.own = opened.providers.own
  return opened
}

async function workOff(
  { parts, store }: TestService,
  { provider, open_providers }: Awaited<ReturnType<typeof providersOf>>,
  isOver: () => Promise<boolean>,
) {
  const channels = channelTable({ ...parts, provider, sandbox: undefined, concurrency: 4 })
  const work = workOf({ ...parts, open_providers }, channels, parts)
  const alone = engine === "sqlite"
  const loop = new WorkLoops({ store, work, concurrency: 4, lease_ms: 30_000, alone })
  await loop.start()
  while (!(await isOver())) await sleep(5)
  await loop.stop(5_000)
}

test("mail of every project goes by the instance's SES, and its notifications find it", async () => {
  using sns = snsServer(signer, { "/signer.pem": signer.cert })
  using amazon = sesServer(SECRET)
  const resolver = { a: async () => ["127.0.0.1"], aaaa: async () => [] }
  await using service = await testService({
    providers: { network: { ca, allow_private: LOOPBACK, port: sns.port, resolver } },
  })
  const opened = await providersOf(service, amazon.url)
  const home = await team(service)
  const { body } = await home.owner.post("/v1/emails", mail(), here(home))
  const read = async () => (await home.owner.get(`/v1/emails/${body.id}`, here(home))).body.data
  await workOff(service, opened, async () => (await read()).status === "sent")
  expect(amazon.requests).toMatchObject([{ is_signed: true }])
  expect(JSON.parse(amazon.requests[0]?.body ?? "").ConfigurationSetName).toBe("belfry")
  const receipts = await service.store.read.select().from(providerReceipts)
  expect(receipts).toMatchObject([
    { config_id: instanceId("email_provider"), provider_message_id: "ses-1", message_id: body.id },
  ])

  const Message = JSON.stringify({
    mail: { messageId: "ses-1", destination: ["ann@example.test"] },
    eventType: "Delivery",
    delivery: { recipients: ["ann@example.test"], smtpResponse: "250 2.0.0 OK" },
  })
  const post = (path: string, fields = {}) =>
    service.anybody.call("POST", path, {
      body: JSON.stringify(signedBy(signer, { Message, ...fields })),
      headers: { "content-type": "text/plain; charset=UTF-8" },
    })
  const callback = instanceCallback(service.parts.secrets, sesProvider)
  expect((await post(callback.replace(/.$/, "_"))).status).toBe(401)
  expect((await post(callback)).status).toBe(200)
  const TopicArn = "arn:aws:sns:eu-west-1:999999999999:belfry"
  expect((await post(callback, { TopicArn })).status).toBe(401)
  await workOff(service, opened, async () => (await read()).status === "delivered")
  await opened.provider.close()

  const mailbox = ownEmailProvider(PROVIDERS, settings()) // with another delivery.provider
  await openInstance(service.store, service.parts.secrets, "email_provider", mailbox)
  expect((await post(callback)).status).toBe(401)
})

test("domains of projects are identities of the instance's SES, and their SPF names it", async () => {
  using amazon = sesServer(SECRET, () => ({
    status: 200,
    body: { VerificationStatus: "SUCCESS", DkimAttributes: { Status: "PENDING", Tokens: [] } },
  }))
  await using service = await testService()
  const opened = await providersOf(service, amazon.url)
  expect(await opened.identityOf(idFor("project_1"), "example.com")).toMatchObject({
    provider_identity_status: "success",
    provider_dkim_status: "pending",
  })
  expect(amazon.requests.map(({ path }) => path)).toEqual(["/v2/email/identities/example.com"])

  const place = recordTargets(
    { ...wanted(amazon.url), "domains.host": "mail.belfry.test" },
    PROVIDERS,
  )
  expect(place.mechanisms).toEqual(["include:amazonses.com"])
  const home = await team(service)
  const path = "/v1/providers/email_provider/config"
  await home.owner.post(path, { provider: "direct" }, here(home))
  const own = await targetsOfProject(service.store.read, home.project_id, place)
  expect(own.mechanisms).toEqual(["a:mail.belfry.test"])
  expect(await opened.identityOf(home.project_id, "example.com")).toBeUndefined()
  await opened.provider.close()
})

test("refused credentials burn no message, and are tried once a minute", async () => {
  using amazon = sesServer(SECRET, () => ({
    status: 403,
    body: { __type: "SignatureDoesNotMatch", message: "no" },
  }))
  await using service = await testService()
  const opened = await providersOf(service, amazon.url)
  const home = await team(service)
  const ids: string[] = []
  for (let at = 0; at < 3; at++) {
    ids.push((await home.owner.post("/v1/emails", mail(), here(home))).body.id)
  }
  const read = async (id: string) =>
    (await home.owner.get(`/v1/emails/${id}`, here(home))).body.data
  const all = () => Promise.all(ids.map(read))
  await workOff(service, opened, async () =>
    (await all()).every(
      ({ status_reason }) => status_reason?.includes("refuses our login") ?? false,
    ),
  )
  expect((await all()).map(({ status }) => status)).toEqual(ids.map(() => "queued"))
  expect((await all()).map(({ attempts }) => attempts).sort()).toEqual([0, 0, 1])
  expect(amazon.requests.length).toBeLessThanOrEqual(3)
  await opened.provider.close()
})
