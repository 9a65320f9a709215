import { expect, test } from "bun:test"
import { DeleteSuppressedDestinationCommand, SESv2Client } from "@aws-sdk/client-sesv2"
import { and, eq } from "drizzle-orm"
import { LOCAL } from "../../src/audit-log/audit-log"
import { PROVIDERS } from "../../src/channels"
import { jobs } from "../../src/jobs/tables"
import * as configs from "../../src/providers/configs"
import { removeFromProviders, suppressionRemoved } from "../../src/suppressions/provider-lists"
import { suppressAll } from "../../src/suppressions/suppressions"
import { type SesRequest, sesServer } from "../fakes/ses-server"
import { testProviders } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
const access = {
  region: "eu-west-1",
  access_key_id: "AKIDEXAMPLE000000000",
  secret_access_key: SECRET,
}
const ONE = "/v2/email/suppression/addresses/"

const service = await sharedService()

/** A project that sends by SES. */
async function withSes(): Promise<TestProject> {
  const project = await service.project()
  const { account_id, project_id } = project
  const wanted = {
    kind: "email_provider" as const,
    ...{ provider: "ses", name: "ses", priority: 100, credentials: access, settings: {} },
  }
  const { secrets } = service.parts
  const maker = { secrets, by: LOCAL, table: PROVIDERS }
  await service.store.tx((tx) => configs.set(tx, { account_id, project_id }, wanted, maker))
  return project
}

const planned = async ({ project_id }: TestProject) => {
  const ours = and(eq(jobs.project_id, project_id), eq(jobs.name, suppressionRemoved.name))
  const rows = await service.store.read.select().from(jobs).where(ours)
  return rows.map(({ payload }) => payload as { project_id: string; addresses: string[] })
}

/** Runs what is planned against this server. */
async function run(project: TestProject, endpoint: string) {
  const settings = { "providers.ses.endpoint": endpoint }
  const handler = removeFromProviders(
    service.store,
    testProviders(service.parts.secrets, { settings }),
  )
  for (const payload of await planned(project)) await handler.run(payload, {} as never)
}

const paths = (requests: SesRequest[]) => requests.map(({ method, path }) => `${method} ${path}`)

test("SES is told of an address that is removed", async () => {
  using amazon = sesServer(SECRET, () => ({ status: 200, body: {} }))
  const project = await withSes()
  const { id } = (await project.post("/v1/suppressions", { email: "ann+x@example.test" })).body.data
  await project.call("DELETE", `/v1/suppressions/${id}`)
  await run(project, amazon.url)
  expect(paths(amazon.requests)).toEqual([`DELETE ${ONE}ann%2Bx%40example.test`])
  expect(amazon.requests).toMatchObject([{ is_signed: true, body: "" }])
})

test("the request is the one that Amazon's own client makes", async () => {
  using amazon = sesServer(SECRET, () => ({ status: 200, body: {} }))
  const credentials = { accessKeyId: access.access_key_id, secretAccessKey: SECRET }
  const client = new SESv2Client({ region: access.region, endpoint: amazon.url, credentials })
  await client.send(new DeleteSuppressedDestinationCommand({ EmailAddress: "ann+x@example.test" }))
  expect(paths(amazon.requests)).toEqual([`DELETE ${ONE}ann%2Bx%40example.test`])
})

test("many addresses are told in pieces, those that were suppressed again are not", async () => {
  using amazon = sesServer(SECRET, () => ({ status: 200, body: {} }))
  const project = await withSes()
  const emails = Array.from({ length: 120 }, (_, at) => `${at}@x.test`)
  await project.post("/v1/suppressions/bulk", { emails: emails.map((email) => ({ email })) })
  await project.post("/v1/suppressions/bulk-remove", { emails })
  expect((await planned(project)).map(({ addresses }) => addresses.length).sort()).toEqual([
    20, 50, 50,
  ])
  await project.post("/v1/suppressions", { email: "7@x.test" })
  await run(project, amazon.url)
  expect(amazon.requests).toHaveLength(119)
  expect(paths(amazon.requests)).not.toContain(`DELETE ${ONE}7%40x.test`)
})

test("an address that SES does not know is no error, and a refusal is tried again", async () => {
  let code = "NotFoundException"
  using amazon = sesServer(SECRET, () => ({ status: 404, body: { __type: code, message: "no" } }))
  const project = await withSes()
  const { id } = (await project.post("/v1/suppressions", { email: "ann@example.test" })).body.data
  await project.call("DELETE", `/v1/suppressions/${id}`)
  await run(project, amazon.url)
  code = "TooManyRequestsException"
  await expect(run(project, amazon.url)).rejects.toThrow("no")
})

test("nothing is planned without such a provider, for a phone number, or for one category", async () => {
  const plain = await service.project()
  const { id } = (await plain.post("/v1/suppressions", { email: "ann@example.test" })).body.data
  await plain.call("DELETE", `/v1/suppressions/${id}`)
  expect(await planned(plain)).toEqual([])

  const project = await withSes()
  const phone = (await project.post("/v1/suppressions", { phone: "+4915112345678" })).body.data
  await project.call("DELETE", `/v1/suppressions/${phone.id}`)
  const scope = { type: "category", key: "news" } as const
  const news = {
    channel: "email",
    address: "a@x.test",
    reason: "unsubscribe",
    origin: "page",
  } as const
  await service.store.tx((tx) => suppressAll(tx, project.project_id, [{ ...news, scope }]))
  await project.post("/v1/suppressions/bulk-remove", { emails: ["a@x.test"] })
  expect(await planned(project)).toEqual([])
})
