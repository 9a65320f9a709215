import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { runCheck } from "../../src/domains/check-job"
import type { JobRow } from "../../src/jobs/jobs"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { mail } from "../harness/mail"
import { PLACE, type TestProject, type TestService, testService } from "../harness/service"
import { ALL, addDomain, check, type Domain, lines, read } from "./acme"
import { runDue, told, waiting } from "./background"
import { netOf } from "./subject"

const clock = movableClock()
let knot: Knot
let service: TestService

describe.skipIf(noKnot)("with a real name server", () => {
  beforeAll(async () => {
    knot = await startKnot()
    service = await testService({ domains: { net: netOf([knot.address]), targets: PLACE } })
  })
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    await knot[Symbol.asyncDispose]()
  })

  const added = (project: TestProject, own?: object) => addDomain(project, own)
  const publish = (domain: Domain, purposes = ALL) =>
    knot.serve(domain.domain, lines(domain, purposes))

  async function verified(project: TestProject) {
    const domain = await added(project)
    await publish(domain)
    expect((await check(project, domain)).body.data.status).toBe("verified")
    return domain
  }

  describe("a domain", () => {
    test("walks to verified as its records appear one by one, and is told once", async () => {
      const project = await service.project()
      const domain = await added(project)
      for (let count = 0; count < ALL.length; count++) {
        await publish(domain, ALL.slice(0, count))
        const { body } = await check(project, domain)
        expect([body.data.status, body.data.records_verified]).toEqual(["pending", count])
        const { data } = (await project.get(`/v1/domains/${domain.id}/status`)).body
        expect(data).toMatchObject({ domain_id: domain.id, progress: count * 25, records_total: 4 })
        clock.advance({ seconds: 11 })
      }
      await publish(domain)
      const { body } = await project.post(`/v1/domains/${domain.id}/verify`)
      expect(body.data).toMatchObject({ status: "verified", records_verified: 4, records_total: 4 })
      expect(refusal(await check(project, domain))).toEqual([409, "already_verified"])
      const [event, ...more] = await told(service, project)
      expect(more).toEqual([])
      expect(event).toEqual({
        type: "domain.verified",
        data: {
          id: domain.id,
          domain: domain.domain,
          status: "verified",
          records_verified: 4,
          records_total: 4,
          verified_at: body.data.verified_at,
        },
      })
    })

    test("is found verified by a check that nobody asked for, after a restart too", async () => {
      const project = await service.project()
      const domain = await added(project)
      await publish(domain)
      await runDue(service)
      expect((await read(project, domain)).status).toBe("pending")
      clock.advance({ seconds: 61 })
      await runDue(service)
      expect((await read(project, domain)).status).toBe("verified")
    })

    test("fails after 72 hours, is told once, and may begin anew", async () => {
      const project = await service.project()
      const domain = await added(project)
      clock.advance({ seconds: 71 * 3600 })
      await runDue(service)
      expect((await read(project, domain)).status).toBe("pending")
      clock.advance({ seconds: 3601 })
      await runDue(service)
      expect(await read(project, domain)).toMatchObject({ status: "failed", next_check_at: null })
      expect(
        (await told(service, project)).map(({ type, data }) => [type, data.verified_at]),
      ).toEqual([["domain.verification_failed", null]])
      const again = (await check(project, domain)).body.data
      expect([again.status, again.failed_at]).toEqual(["pending", null])
      await publish(domain)
      clock.advance({ seconds: 61 })
      await runDue(service)
      const types = (await told(service, project)).map(({ type }) => type)
      expect(types).toEqual(["domain.verification_failed", "domain.verified"])
    })

    test("that loses a record is warned once, and is pending after 48 hours", async () => {
      const project = await service.project()
      const domain = await verified(project)
      await publish(domain, ["verification", "spf", "dmarc"])
      clock.advance({ seconds: 86_401 })
      await runDue(service)
      const warned = (await project.get(`/v1/domains/${domain.id}`)).body.data
      expect(warned).toMatchObject({ status: "verified", records_verified: 3 })
      expect(warned.warning).toContain("These DNS records are missing: dkim")
      clock.advance({ seconds: 86_401 })
      await runDue(service)
      expect((await read(project, domain)).status).toBe("verified")
      expect((await project.post("/v1/emails", mail({ from: `a@${domain.domain}` }))).status).toBe(
        201,
      )
      clock.advance({ seconds: 86_401 })
      await runDue(service)
      expect((await read(project, domain)).status).toBe("pending")
      const refused = await project.post("/v1/emails", mail({ from: `a@${domain.domain}` }))
      expect(refusal(refused)).toEqual([400, "domain_not_verified"])
      expect(refused.body.error.details).toEqual({ domain: domain.domain, domain_id: domain.id })
      const events = await told(service, project)
      expect(events.map(({ type }) => type)).toEqual(["domain.verified", "domain.degraded"])
      expect(events[1]?.data.missing).toEqual(["dkim"])
      await publish(domain)
      clock.advance({ seconds: 61 })
      await runDue(service)
      expect((await read(project, domain)).status).toBe("verified")
    })

    test("that has its record back in time is as it was", async () => {
      const project = await service.project()
      const domain = await verified(project)
      await publish(domain, ["verification", "spf", "dkim"])
      clock.advance({ seconds: 86_401 })
      await runDue(service)
      await publish(domain)
      clock.advance({ seconds: 86_401 })
      await runDue(service)
      const after = (await project.get(`/v1/domains/${domain.id}`)).body.data
      expect(after).toMatchObject({ status: "verified", warning: null, records_verified: 4 })
    })

    test("is verified for one project only, whoever asked first", async () => {
      const [project, other] = [await service.project(), await service.project()]
      const domain = await added(project)
      const { body } = await other.post("/v1/domains", { domain: domain.domain })
      await publish(domain)
      await check(project, domain)
      const theirs: Domain = body.data
      await knot.serve(domain.domain, [...lines(domain, ALL), ...lines(theirs, ["verification"])])
      const tried = (await check(other, theirs)).body.data
      expect(tried.status).toBe("pending")
      const third = await service.project()
      const refused = await third.post("/v1/domains", { domain: domain.domain })
      expect(refusal(refused)).toEqual([409, "conflict"])
      expect(refused.body.error.details).toEqual({ reason: "verified_elsewhere" })
    })
  })

  describe("checks", () => {
    test("are one in ten seconds and sixty in an hour", async () => {
      clock.freeze()
      const project = await service.project()
      const domain = await added(project)
      expect((await check(project, domain)).status).toBe(200)
      const refused = await check(project, domain)
      expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
      expect(refused.body.error.details).toMatchObject({ limit: 1, window_seconds: 10 })
      clock.advance({ seconds: 10 })
      expect((await check(project, domain)).status).toBe(200)
    })

    test("of two nodes at once tell one event, and make one next turn", async () => {
      const project = await service.project()
      const domain = await added(project)
      await publish(domain)
      const payload = {
        domain_id: domain.id,
        project_id: project.project_id,
        due: domain.next_check_at ?? "",
      }
      const handler = runCheck(service.parts.domains)
      await Promise.all([1, 2].map(() => handler.run(payload, {} as JobRow)))
      await handler.run(payload, {} as JobRow) // and of one that died before it was done
      expect((await told(service, project)).map(({ type }) => type)).toEqual(["domain.verified"])
      const { next_check_at } = await read(project, domain)
      const turns = await waiting(service, domain.id)
      expect(turns.filter(({ due }) => due === next_check_at)).toHaveLength(1)
    })

    test("of a server that is silent for a day cost nothing", async () => {
      const silent = await startKnot()
      await using own = await testService({
        domains: { net: netOf([silent.address], 100), targets: PLACE },
      })
      const project = await own.project()
      const domain = await added(project)
      await silent.serve(domain.domain, lines(domain, ALL))
      expect((await check(project, domain)).body.data.status).toBe("verified")
      await silent[Symbol.asyncDispose]()
      for (let day = 0; day < 3; day++) {
        clock.advance({ seconds: 86_401 })
        await runDue(own)
      }
      const after = (await project.get(`/v1/domains/${domain.id}`)).body.data
      expect(after).toMatchObject({ status: "verified", warning: null, records_verified: 4 })
      expect(after.dns_records[0].hint).toContain("Nothing is lost")
    })
  })

  describe("a DKIM key", () => {
    test("is followed by another one without a gap", async () => {
      const project = await service.project()
      const domain = await verified(project)
      const path = `/v1/domains/${domain.id}/rotate-dkim`
      const turned: Domain = (await project.post(path)).body.data
      const keys = turned.dns_records.filter(({ purpose }) => purpose === "dkim")
      expect(keys.map(({ host, required, status }) => [host, required, status])).toEqual([
        [`svc1._domainkey.${domain.domain}`, true, "verified"],
        [`svc2._domainkey.${domain.domain}`, false, "pending"],
      ])
      const running = await project.post(path)
      expect([refusal(running)[1], running.body.error.details.reason]).toEqual([
        "conflict",
        "rotation_running",
      ])
      const [, fresh] = keys
      const both = [...lines(domain, ALL), `svc2._domainkey TXT "${fresh?.value}"`]
      await knot.serve(domain.domain, both)
      clock.advance({ seconds: 61 })
      await runDue(service)
      const after = await read(project, domain)
      const seen = after.dns_records.filter(({ purpose }) => purpose === "dkim")
      expect(
        seen.map(({ host, required, status }) => [host.slice(0, 4), required, status]),
      ).toEqual([
        ["svc1", false, "verified"],
        ["svc2", true, "verified"],
      ])
      expect(seen[0]?.hint).toContain("may remove the record after")
      expect(after.status).toBe("verified")
      clock.advance({ seconds: 8 * 86_400 })
      await runDue(service)
      expect((await read(project, domain)).dkim_selectors).toEqual(["svc2"])
      const next: Domain = (await project.post(path)).body.data
      expect(next.dkim_selectors).toEqual(["svc2", "svc1"])
    })
  })
})
