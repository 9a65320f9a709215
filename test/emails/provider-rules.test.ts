import { expect, test } from "bun:test"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { testService } from "../harness/service"

const ALL = "/v1/providers/email_provider/config"

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

const relay = { provider: "smtp", credentials: { host: "127.0.0.1", port: 9, tls: "none" } }

test("under serve, what the mailbox cannot take is accepted once a project has a provider", async () => {
  await using service = await testService({ rules: { mailbox_takes_all: false } })
  const home = await team(service)
  const send = (fields: Record<string, unknown> = {}) =>
    home.owner.post("/v1/emails", mail(fields), here(home))
  const refused = await send()
  expect([refused.status, refused.body.error.details.reason]).toEqual([503, "no_provider"])

  const { body } = await home.owner.post(ALL, relay, here(home))
  expect((await send()).status).toBe(201)
  const fromMailbox = await send({ from: "me@mailbox.test" })
  expect(fromMailbox.body.error.code).toBe("domain_not_verified")

  const path = `${ALL}/${body.data.id}`
  await home.owner.patch(path, { enabled: false }, here(home))
  expect((await send()).status).toBe(503)

  await home.owner.post(ALL, { provider: "mailbox" }, here(home))
  expect((await send({ from: "me@mailbox.test" })).status).toBe(201)
})

test("a mailbox that does not run cannot be configured", async () => {
  await using service = await testService({
    providers: { mailbox_port: null },
  })
  const home = await team(service)
  const { status, body } = await home.owner.post(ALL, { provider: "mailbox" }, here(home))
  expect([status, body.error.code]).toEqual([422, "validation_error"])
})
