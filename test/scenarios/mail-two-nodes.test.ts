import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { createTransport } from "nodemailer"
import { countingRelay } from "../fakes/counting-relay"
import { makeHome } from "../harness/binary"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { note } from "../harness/peers"
import { freePort } from "../harness/ports"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { isVerified, startReceiver } from "../harness/receiver"
import { countOf, get, type Server, until } from "./mails"
import { initialise, relaySettings, startServe } from "./serve"

const EACH = 20
const DOMAIN = "acme.test"

const has_postgres = !noPostgres()
if (!has_postgres) note("mail servers of two nodes: start the tests by `bun run test`")

describe.skipIf(!has_postgres || noKnot)("two nodes on one Postgres", () => {
  test("what one of them accepted by SMTP, either of them processes; also when the one is killed", async () => {
    await using database = await freshDatabase()
    await using knot = await startKnot({ [DOMAIN]: [] })
    using relay = countingRelay({ delay_ms: 5 })
    using hooks = startReceiver()
    const homes = [makeHome(), makeHome()] as const
    using _ = {
      [Symbol.dispose]: () => {
        for (const home of homes) rmSync(home, { recursive: true, force: true })
      },
    }
    const base = relaySettings(relay.port, {
      DATABASE_URL: database.url,
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      BELFRY_STORAGE_BLOBS_DIR: join(homes[0], "blobs"),
      BELFRY_DNS_SERVERS: knot.address,
      BELFRY_DOMAINS_HOST: "mx.belfry.test",
      BELFRY_DELIVERY_LEASE: "5s",
      BELFRY_WEBHOOKS_REQUIRE_HTTPS: "false",
      BELFRY_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.0/8",
    })
    const api_key = await initialise(homes[0], base)
    const open = async (home: string) => {
      const [submission, inbound] = [await freePort(), await freePort()]
      const listen = {
        BELFRY_SMTP_SUBMISSION_LISTEN: `127.0.0.1:${submission}`,
        BELFRY_SMTP_INBOUND_LISTEN: `127.0.0.1:${inbound}`,
      }
      const node = await startServe({ home, api_key, env: { ...base, ...listen } })
      return { node, submission, inbound, [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() }
    }
    await using one = await open(homes[0])
    await using two = await open(homes[1])
    const secret = await makeWebhook(one.node, hooks.url)
    await verifyDomain(one.node, knot)
    const inbox = (count: number) =>
      until(`${count} mails processed`, async () => {
        const path = `/v1/inbound-emails?per_page=100`
        const mails = await get<{ status: string }[]>(two.node, path)
        return mails.filter(({ status }) => status === "processed").length === count
      })

    await Promise.all([one, two].map(({ inbound }) => write(inbound, EACH)))
    await inbox(2 * EACH)
    await submit(one.submission, api_key, EACH)
    await until("all sent", async () => (await countOf(two.node, "sent")) === EACH)

    // The rest is acknowledged by the one, which is gone in the next moment.
    await Promise.all([write(one.inbound, EACH), submit(one.submission, api_key, EACH)])
    one.node.kill("SIGKILL")
    await one.node.exited
    await inbox(3 * EACH)
    await until("all sent", async () => (await countOf(two.node, "sent")) === 2 * EACH)

    await until("every event", () => new Set(hooks.ids()).size === 3 * EACH)
    expect(hooks.received.every((delivery) => isVerified(secret, delivery))).toBe(true)
    const subjects = hooks.received.map(
      ({ body }) => (JSON.parse(body) as { data: { inbound: { id: string } } }).data.inbound.id,
    )
    expect(new Set(subjects).size).toBe(3 * EACH)
  })
})

/** Writes mails to the receiving domain, each on a connection of its own. */
async function write(port: number, count: number) {
  await Promise.all(
    Array.from({ length: count }, async (_, number) => {
      const transport = createTransport({ host: "127.0.0.1", port, ignoreTLS: true })
      const mail = {
        from: "ann@friends.test",
        to: `u${number}@${DOMAIN}`,
        subject: "Hi",
        text: "x",
      }
      await transport.sendMail(mail)
      transport.close()
    }),
  )
}

async function submit(port: number, key: string, count: number) {
  const transport = createTransport({
    ...{ host: "127.0.0.1", port, pool: true, requireTLS: true },
    ...{ auth: { user: "svc", pass: key }, tls: { rejectUnauthorized: false } },
  })
  const mail = { from: "me@example.test", to: "ann@example.test", subject: "Hi", text: "x" }
  await Promise.all(Array.from({ length: count }, () => transport.sendMail(mail)))
  transport.close()
}

async function makeWebhook(node: Server, url: string): Promise<string> {
  const body = JSON.stringify({ url, events: ["email.received"] })
  const response = await node.request("/v1/webhooks", { method: "POST", body })
  expect(response.status).toBe(201)
  return ((await response.json()) as { data: { secret: string } }).data.secret
}

interface Domain {
  id: string
  status: string
  dns_records: { type: string; host: string; value: string; priority: number | null }[]
}

async function verifyDomain(node: Server, knot: Knot) {
  const body = JSON.stringify({ domain: DOMAIN, receiving: true })
  const response = await node.request("/v1/domains", { method: "POST", body })
  expect(response.status).toBe(201)
  const { data } = (await response.json()) as { data: Domain }
  const zone = data.dns_records.map(({ type, host, value, priority }) =>
    type === "MX" ? `${host}. MX ${priority} ${value}.` : `${host}. TXT "${value}"`,
  )
  await knot.serve(DOMAIN, zone)
  await until("the domain verified", async () => {
    await node.request(`/v1/domains/${data.id}/check`, { method: "POST" })
    return (await get<Domain>(node, `/v1/domains/${data.id}`)).status === "verified"
  })
}
