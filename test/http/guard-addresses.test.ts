import { describe, expect, test } from "bun:test"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const direct = await sharedService()
const proxied = await sharedService({ trusted_proxies: ["127.0.0.1", "::1", "10.0.0.0/8"] })

const ALLOWED = "192.0.2.7"
const DENIED = [403, "ip_not_allowed"] as const

const bound = (service: typeof direct) => service.project({ ip_addresses: [ALLOWED] })

/** Everything that programs have ever believed about where somebody comes from. */
const SPOOFS: Record<string, string>[] = [
  { "x-forwarded-for": ALLOWED },
  { "x-forwarded-for": `${ALLOWED}, ${ALLOWED}` },
  { forwarded: `for=${ALLOWED}` },
  { forwarded: `for="[::ffff:${ALLOWED}]";proto=https` },
  { "x-real-ip": ALLOWED },
  { "x-client-ip": ALLOWED },
  { "true-client-ip": ALLOWED },
  { "cf-connecting-ip": ALLOWED },
  { "x-originating-ip": ALLOWED },
  { "x-cluster-client-ip": ALLOWED },
  { "x-forwarded": ALLOWED },
  { host: ALLOWED },
]

describe("without a trusted proxy", () => {
  test.each(SPOOFS)("%j makes nobody another", async (headers) => {
    const project = await bound(direct)
    expect(refusal(await project.get("/v1/emails", headers))).toEqual([...DENIED])
  })

  test("over a real connection the peer's own address counts", async () => {
    const { url } = direct.listen()
    const ask = async (ip_addresses: string[]) => {
      const { key } = await direct.project({ ip_addresses })
      const headers = { "x-api-key": key, "x-forwarded-for": ALLOWED }
      return (await fetch(`${url}/v1/emails`, { headers })).status
    }
    expect(await ask([ALLOWED])).toBe(403)
    expect(await ask(["127.0.0.1"])).toBe(200)
    expect(await ask(["127.0.0.0/8"])).toBe(200)
    expect(await ask(["::ffff:127.0.0.1"])).toBe(200)
    expect(await ask(["::ffff:127.0.0.0/104"])).toBe(200)
  })

  test("spoofed addresses give no guesser new tries", async () => {
    clock.freeze() // no minute ends while we count
    const own = client(direct.app, "svc_live_wrong")
    let refused = 0
    for (let count = 0; count < 310; count++) {
      const { status } = await own.get("/v1/emails", { "x-forwarded-for": `198.51.100.${count}` })
      if (status === 429) refused += 1
    }
    expect(refused).toBeGreaterThanOrEqual(9)
  })
})

test("a proxy counts from the moment at which the settings trust it", async () => {
  await using service = await testService()
  const project = await bound(service)
  const ask = async () => (await project.get("/v1/emails", { "x-forwarded-for": ALLOWED })).status
  expect(await ask()).toBe(403)
  service.settings["http.trusted_proxies"] = ["127.0.0.1"]
  expect(await ask()).toBe(200)
  service.settings["http.trusted_proxies"] = []
  expect(await ask()).toBe(403)
})

describe("behind a trusted proxy", () => {
  test.each([
    ["only what the proxy itself added", `${ALLOWED}, 203.0.113.9`],
    ["a text that is no address", `${ALLOWED}, unknown`],
    ["an address with a port", `${ALLOWED}:443`],
    ["a number that looks like one", "3221225991"],
    ["an empty hop", `${ALLOWED}, `],
    ["another spelling", "192.0.2.07"],
    ["quotes", `"${ALLOWED}"`],
  ])("%s does not count as allowed", async (_, chain) => {
    const project = await bound(proxied)
    const answer = await project.get("/v1/emails", { "x-forwarded-for": chain })
    expect(refusal(answer)).toEqual([...DENIED])
  })

  test.each([
    ["the address", ALLOWED],
    ["in its mapped form", `::ffff:${ALLOWED}`],
    ["in hexadecimal mapped form", "::ffff:c000:207"],
    ["behind several proxies of ours", `203.0.113.9, ${ALLOWED}, 10.1.2.3, 10.9.9.9`],
  ])("%s is let in", async (_, chain) => {
    const project = await bound(proxied)
    expect((await project.get("/v1/emails", { "x-forwarded-for": chain })).status).toBe(200)
  })

  test.each(SPOOFS.filter((headers) => !("x-forwarded-for" in headers)))(
    "%j is not asked for",
    async (headers) => {
      const project = await bound(proxied)
      expect(refusal(await project.get("/v1/emails", headers))).toEqual([...DENIED])
    },
  )
})
