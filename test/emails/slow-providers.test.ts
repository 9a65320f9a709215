import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { deferBacklogs, ProviderPermits } from "../../src/emails/email-context"
import { ConcurrencyLimit } from "../../src/emails/smtp/destination-limits"
import { asTheyStand } from "../../src/messages/message-list"
import { attempts, messages } from "../../src/messages/tables"
import { type Script, smtpSink } from "../fakes/smtp-sink"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { testFailover } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { delivering } from "./direct-delivery"

quietLog()

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

/** A project whose own relay is this sink. */
async function projectAt(service: TestService, { port }: { port: number }) {
  const home = await team(service)
  const config = { provider: "smtp", credentials: { host: "127.0.0.1", port, tls: "none" } }
  const { status } = await home.owner.post(
    "/v1/providers/email_provider/config",
    config,
    here(home),
  )
  expect(status).toBe(201)
  return {
    async send(count: number) {
      const list = Array.from({ length: count }, () => mail())
      const { body } = await home.owner.post("/v1/emails/batch", { messages: list }, here(home))
      expect(body.data.succeeded).toBe(count)
    },
    async rows() {
      const { read } = service.store
      const ours = eq(messages.project_id, home.project_id)
      return asTheyStand(read, await read.select().from(messages).where(ours))
    },
  }
}

/** As `serve` opens it: twenty deliveries at once, of everybody. */
function carriersOf({ store, parts }: TestService) {
  const permits = new ProviderPermits({
    limit: new ConcurrencyLimit(20),
    concurrency: 20,
    onBacklog: deferBacklogs(store, "email", ({ project_id }) =>
      project_id === undefined ? undefined : { project_id },
    ),
  })
  return testFailover(store, parts.open_providers, permits)
}

/** So many mails are taken; all after them find that it hangs. */
function turnsSlow(after: number): Script {
  let taken = 0
  return { MAIL: () => (taken++ < after ? undefined : "stall") }
}

test.each<[what: string, script: Script, first: number]>([
  ["never greeted anybody", { greeting: "stall" }, 0],
  ["hangs at MAIL", { MAIL: "stall" }, 0],
  ["was quick until now", turnsSlow(40), 40],
])(
  "a relay that %s does not keep the mail of other projects waiting",
  async (_, script, before) => {
    await using service = await testService({
      providers: { settings: { "delivery.concurrency": 20 } },
    })
    using hanging = smtpSink(script)
    using healthy = smtpSink()
    const theirs = await projectAt(service, hanging)
    const ours = await projectAt(service, healthy)
    const provider = carriersOf(service)

    await ours.send(1)
    if (before > 0) await theirs.send(before)
    await delivering(service, provider, async () => {
      return healthy.received.length === 1 && hanging.received.length === before
    })
    await theirs.send(100)
    await ours.send(20)
    // Whoever hangs is let go only once everybody else has been served.
    await delivering(service, provider, async () => healthy.received.length === 21)
    await provider.close()

    expect(hanging.received).toHaveLength(before)
    const tried = await service.store.read.select().from(attempts)
    expect(tried).toHaveLength(before + 21) // so nobody waited until one of the hanging ones was given up
    const waiting = (await theirs.rows()).filter(({ status }) => status === "queued")
    const sent_away = waiting.filter(({ status_reason }) =>
      status_reason?.startsWith("smtp (smtp)"),
    )
    expect(sent_away.length).toBeGreaterThan(0)
    for (const { attempts: made, next_attempt_at } of sent_away) {
      expect(made).toBe(0)
      expect(next_attempt_at).not.toBeNull()
    }
  },
)

test("a quick relay takes everything at once, and nobody is sent away", async () => {
  await using service = await testService({
    providers: { settings: { "delivery.concurrency": 20 } },
  })
  using sink = smtpSink()
  const project = await projectAt(service, sink)
  const provider = carriersOf(service)
  await project.send(100)
  await project.send(100)
  await delivering(service, provider, async () => sink.received.length === 200)
  await provider.close()
  const reasons = (await project.rows()).map(({ status_reason }) => status_reason)
  expect(reasons.filter((reason) => reason?.startsWith("smtp (smtp)"))).toEqual([])
})
