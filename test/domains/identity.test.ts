import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { Standing } from "../../src/domains/standing"
import { movableClock } from "../harness/clock"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { quietLog } from "../harness/quiet"
import { PLACE, type TestService, testService } from "../harness/service"
import { ALL, addDomain, check, lines } from "./acme"
import { runDue } from "./background"
import { netOf } from "./subject"

quietLog()
const clock = movableClock()
let knot: Knot
let service: TestService
let ask: () => Promise<Required<Standing> | undefined>

const standing = (identity: "pending" | "success", dkim: "pending" | "success") => async () => ({
  provider_identity_status: identity,
  provider_dkim_status: dkim,
})

describe.skipIf(noKnot)("a domain of a provider that keeps identities of its own", () => {
  beforeAll(async () => {
    knot = await startKnot()
    const identityOf = () => ask()
    service = await testService({
      domains: { net: netOf([knot.address]), place: PLACE, identityOf },
    })
  })
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    await knot[Symbol.asyncDispose]()
  })

  async function published() {
    const project = await service.project()
    const domain = await addDomain(project)
    await knot.serve(domain.domain, lines(domain, ALL))
    const look = async () => {
      const { data } = (await check(project, domain)).body
      clock.advance({ seconds: 11 })
      const { status, provider_identity_status: identity, provider_dkim_status: dkim } = data
      return [status, identity, dkim]
    }
    const now = async () => (await project.get(`/v1/domains/${domain.id}`)).body.data.status
    return { look, now }
  }

  test("is verified only when the provider accepted it, too", async () => {
    const { look } = await published()
    ask = standing("pending", "pending")
    expect(await look()).toEqual(["pending", "pending", "pending"])
    ask = standing("success", "pending")
    expect(await look()).toEqual(["pending", "success", "pending"])
    ask = standing("success", "success")
    expect(await look()).toEqual(["verified", "success", "success"])
  })

  test("stays what it was while the provider cannot be asked", async () => {
    const { look } = await published()
    ask = standing("success", "pending")
    await look()
    ask = () => Promise.reject(new Error("no answer"))
    expect(await look()).toEqual(["pending", "success", "pending"])
    ask = async () => undefined
    expect(await look()).toEqual(["verified", "not_required", "not_required"])
  })

  test("is not lost once it is verified, whatever the provider says then", async () => {
    const { look, now } = await published()
    ask = standing("success", "success")
    expect(await look()).toEqual(["verified", "success", "success"])
    ask = standing("pending", "pending")
    clock.advance({ seconds: 2 * 86_401 })
    await runDue(service)
    expect(await now()).toBe("verified")
  })
})
