import { expect, test } from "bun:test"
import {
  CreateEmailIdentityCommand,
  GetEmailIdentityCommand,
  SESv2Client,
} from "@aws-sdk/client-sesv2"
import { emailIdentities } from "../../src/providers/open-providers"
import { failover } from "../emails/failover-setup"
import { sesServer } from "../fakes/ses-server"
import { testProviders } from "../harness/providers"
import { PROJECT } from "../messages/letters"
import { refusal } from "../store/facts"

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
const access = {
  region: "eu-west-1",
  access_key_id: "AKIDEXAMPLE000000000",
  secret_access_key: SECRET,
}
const TOKENS = ["one", "two", "three"]
const ALIASES = TOKENS.map((selector) => ({ selector, target: `${selector}.dkim.amazonses.com` }))

const ask = (it: Awaited<ReturnType<typeof failover>>, endpoint: string) => {
  const settings = { "providers.ses.endpoint": endpoint }
  return emailIdentities(it.store.read, testProviders(it.secrets, { settings }))(
    PROJECT,
    "example.com",
  )
}

test.each([
  [true, "SUCCESS", "SUCCESS", "success", "success"],
  [false, "PENDING", "NOT_STARTED", "pending", "pending"],
  [false, "TEMPORARY_FAILURE", "TEMPORARY_FAILURE", "pending", "pending"],
  [false, "FAILED", "FAILED", "failed", "failed"],
])("an identity that is %s, %s, with DKIM %s, is %s and %s", async (...row) => {
  const [VerifiedForSendingStatus, VerificationStatus, Status, identity, dkim] = row
  using server = sesServer(SECRET, () => ({
    status: 200,
    body: {
      VerifiedForSendingStatus,
      VerificationStatus,
      DkimAttributes: { Status, Tokens: TOKENS },
    },
  }))
  await using it = await failover()
  await it.add("ses", access)
  expect(await ask(it, server.url)).toEqual({
    provider_identity_status: identity as "pending",
    provider_dkim_status: dkim as "pending",
    dkim_aliases: ALIASES,
  })
})

test.each([
  [{ SigningHostedZone: "dkim.eu-west-1.amazonses.com" }, ["one.dkim.eu-west-1.amazonses.com"]],
  [{ SigningAttributesOrigin: "EXTERNAL" }, []],
])("records of its keys with %p lead to %p", async (own, targets) => {
  const DkimAttributes = { Status: "SUCCESS", Tokens: ["one"], ...own }
  using server = sesServer(SECRET, () => ({ status: 200, body: { DkimAttributes } }))
  await using it = await failover()
  await it.add("ses", access)
  const found = await ask(it, server.url)
  expect(found?.dkim_aliases.map(({ target }) => target)).toEqual(targets)
})

test("one that SES does not know is made, with the requests of the AWS SDK", async () => {
  const answers = () => [
    { status: 404, body: { message: "no" }, headers: { "x-amzn-errortype": "NotFoundException" } },
    { status: 200, body: { DkimAttributes: { Status: "PENDING", Tokens: TOKENS } } },
  ]
  let script = answers()
  using server = sesServer(SECRET, () => script.shift())
  await using it = await failover()
  await it.add("ses", access)
  expect(await ask(it, server.url)).toMatchObject({ provider_dkim_status: "pending" })

  script = answers()
  const client = new SESv2Client({
    region: access.region,
    endpoint: server.url,
    maxAttempts: 1,
    credentials: { accessKeyId: access.access_key_id, secretAccessKey: SECRET },
  })
  await refusal(client.send(new GetEmailIdentityCommand({ EmailIdentity: "example.com" })))
  await client.send(new CreateEmailIdentityCommand({ EmailIdentity: "example.com" }))
  const asked = server.requests.map(({ method, path, body, is_signed }) => {
    return { method, path, body: body && JSON.parse(body), is_signed }
  })
  expect(asked.slice(0, 2)).toEqual(asked.slice(2))
  expect(asked.every(({ is_signed }) => is_signed)).toBe(true)
})

test("a refusal is told, and a project without SES has no identities", async () => {
  using server = sesServer(SECRET, () => ({ status: 403, body: { message: "denied" } }))
  await using it = await failover()
  expect(await ask(it, server.url)).toBeUndefined()
  await it.add("ses", access)
  expect(await refusal(ask(it, server.url))).toBe("denied")
})
