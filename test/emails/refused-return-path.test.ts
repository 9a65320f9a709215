import { afterAll, expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { recentLines } from "../../src/core/log"
import { refusedReturnPaths } from "../../src/providers/health"
import { mailTo } from "../contracts/email-provider"
import { smtpSink } from "../fakes/smtp-sink"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { PROJECT } from "../messages/letters"
import { failover } from "./failover-setup"

quietLog()
const service = await sharedService()
const HOST = "mx.belfry.test"

const own = settings() as { "domains.host": string | null }
own["domains.host"] = HOST
afterAll(() => {
  own["domains.host"] = null
})

const WORDS = "553 5.7.1 Sender address rejected: not owned by user"

/** A relay that says at RCPT which senders it takes, as Postfix does by default. */
function strictRelay() {
  const relay = { takes_ours: false }
  let is_ours = false
  const sink = smtpSink({
    MAIL: (line) => {
      is_ours = line.includes(HOST)
      return undefined
    },
    RCPT: () => (is_ours && !relay.takes_ours ? WORDS : undefined),
  })
  return Object.assign(relay, sink)
}

test("what a relay says of our return path is kept in its row, and told once", async () => {
  using relay = strictRelay()
  await using it = await failover()
  const { id } = await it.add("smtp", { host: "127.0.0.1", port: relay.port, tls: "none" })
  const lines = () => recentLines().filter((line) => line.includes("return path")).length
  const before = lines()
  const send = () => {
    const mail = { ...mailTo("ann@b.test"), project_id: PROJECT }
    return it.provider.send({ ...mail, reports_to: async () => `b+token@${HOST}` } as typeof mail)
  }
  const kept = async () => refusedReturnPaths(await it.find(id))
  const both = await Promise.all([send(), send()])
  expect(both.map(({ status }) => status)).toEqual(["sent", "sent"])
  expect([await kept(), lines() - before]).toEqual([{ [HOST]: WORDS }, 1])
  relay.takes_ours = true
  await it.change(id, { settings: { max_per_second: 100 } })
  expect(await kept()).toEqual({})
  await send()
  expect(relay.lines.filter((line) => line.includes(HOST)).length).toBeGreaterThanOrEqual(2)
})

test("providers test and the record of the domain tell of it until the relay takes it", async () => {
  using relay = strictRelay()
  const { owner, account_id, project_id } = await team(service)
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  await owner.patch("/v1/settings", { default_from: "shop@example.test" }, here)
  const ALL = "/v1/providers/email_provider/config"
  const credentials = { host: "127.0.0.1", port: relay.port, tls: "none" }
  const { id } = (await owner.post(ALL, { provider: "smtp", credentials }, here)).body.data
  const { domain } = (await owner.post("/v1/domains", { domain: "strict.test" }, here)).body.data
  const tried = async (body: object) =>
    (await owner.post(`${ALL}/${id}/test`, body, here)).body.data.detail as string
  const record = async () => {
    const [found] = (await owner.get(`/v1/domains?domain=${domain}`, here)).body.data
    return found.dns_records.find(({ purpose }: { purpose: string }) => purpose === "return_path")
  }
  expect(await tried({})).toEndWith(`It takes ${HOST} as envelope sender.`)
  expect((await record()).mistake).not.toBe("return_path_refused")

  const refused = `The relay refuses ${HOST} as envelope sender: "${WORDS}" Belfry sends mail with the author's address`
  expect(await tried({ to: "ann@example.test" })).toContain(refused)
  expect(await record()).toMatchObject({
    mistake: "return_path_refused",
    hint: expect.stringContaining(refused),
  })
  expect(await tried({})).toEndWith(
    `It refused a mail with it, though: "${WORDS}" The next mail tries it again.`,
  )

  relay.takes_ours = true
  expect(await tried({ to: "ann@example.test" })).toEndWith(`It takes ${HOST} as envelope sender.`)
  expect((await record()).mistake).not.toBe("return_path_refused")
  expect(relay.received).toHaveLength(2)
})
