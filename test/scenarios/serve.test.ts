import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { countingRelay } from "../fakes/counting-relay"
import { runBinary } from "../harness/binary"
import { expectNoneLost, expectNoneTwice } from "../harness/nothing-lost"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import {
  countOf,
  drained,
  eventTypes,
  get,
  type Mail,
  post,
  problemOf,
  reaches,
  send,
} from "./mails"
import { initialise, lastingHome, lean, relaySettings, startServe } from "./serve"

test("without a provider nothing is accepted that nothing can deliver", async () => {
  using lasting = lastingHome()
  await using server = await startServe({ home: lasting.home })
  const response = await post(server, { to: "ann@example.test" })
  expect(response.status).toBe(503)
  const problem = await problemOf(response)
  expect(problem.code).toBe("service_unavailable")
  expect(problem.details.reason).toBe("no_provider")
  expect(await countOf(server, "queued")).toBe(0)

  const copied = await post(server, { cc: ["bob@example.test"] })
  expect((await problemOf(copied)).details.reason).toBe("no_provider")

  const id = await send(server) // to mailbox.test, which the embedded mailbox takes
  await reaches(server, id, "delivered")
})

test("`init` makes the key that `serve` knows, once", async () => {
  using lasting = lastingHome()
  const { home } = lasting
  const api_key = await initialise(home, lean)
  const again = await runBinary(["init", "--json", "--data-dir", join(home, "belfry")], { home })
  expect(JSON.parse(again.stdout)).toMatchObject({ created: false, api_key: null })
  using relay = countingRelay()
  await using server = await startServe({ home, api_key, env: relaySettings(relay.port) })
  const id = await send(server, { from: "me@example.test", to: "ann@elsewhere.test" })
  await reaches(server, id, "sent")
  expect(await eventTypes(server, id)).toEqual(["email.queued", "email.sent"])

  const foreign = await post(server, { from: "me@elsewhere.test" })
  expect(foreign.status).toBe(400)
  expect((await problemOf(foreign)).code).toBe("domain_not_verified")
  const simulated = await post(server, { from: "me@mailbox.test" })
  expect((await problemOf(simulated)).code).toBe("domain_not_verified") // not with a real relay
})

const has_postgres = !noPostgres()
if (!has_postgres) note("two nodes on Postgres: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("two nodes on one Postgres", () => {
  const NODES = 2
  const EACH = 60

  test("share the work: each message leaves once, and either node tells of it", async () => {
    await using database = await freshDatabase()
    using first = lastingHome()
    using second = lastingHome()
    const delay_ms = 30 // else one node is done before the other wakes
    using relay = countingRelay({ delay_ms })
    const env = relaySettings(relay.port, {
      DATABASE_URL: database.url,
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      BELFRY_DELIVERY_CONCURRENCY: "4",
      BELFRY_STORAGE_BLOBS_DIR: join(first.home, "blobs"),
    })
    const api_key = await initialise(first.home, env)
    await using one = await startServe({ home: first.home, api_key, env })
    await using two = await startServe({ home: second.home, api_key, env })

    const mail = { from: "me@example.test", to: "ann@example.test" }
    const sends = [one, two].flatMap((node) => Array.from({ length: EACH }, () => send(node, mail)))
    const ids = await Promise.all(sends)
    await drained(one)
    const counts = relay.counts()
    expectNoneLost(ids.filter((id) => !counts.has(`<${id}@example.test>`)))
    expect(counts.size).toBe(NODES * EACH)
    expectNoneTwice(counts)
    const [id = ""] = ids
    for (const node of [one, two]) {
      expect(await get<Mail>(node, `/v1/emails/${id}`)).toMatchObject({
        status: "sent",
        attempts: 1,
      })
      expect(await countOf(node, "sent")).toBe(NODES * EACH)
    }

    one.kill("SIGKILL") // the other one carries on
    await one.exited
    const later = await send(two, mail)
    await reaches(two, later, "sent")
  })
})
