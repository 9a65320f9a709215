import { describe, expect, test } from "bun:test"
import { isoFrom } from "../../src/core/time"
import { kept, transition } from "../../src/domains/check-job"
import { nextCheck, OFFSETS } from "../../src/domains/check-schedule"
import { type DomainRow, expectedRecords } from "../../src/domains/expected-records"
import type { RecordCheck, RecordChecks } from "../../src/domains/tables"
import { PLACE } from "../harness/service"
import { testDomain, testKey } from "./subject"

const key = await testKey()
const BEGAN = Date.parse("2026-11-21T10:00:00Z")
const HOUR = 3_600_000

const seen = (status: RecordCheck["status"]): RecordCheck => ({
  status,
  found: [],
  hint: null,
  mistake: null,
  difference: null,
  answers: [],
})

const checks = (own: RecordChecks = {}): RecordChecks => ({
  verification: seen("verified"),
  spf: seen("verified"),
  dkim: seen("verified"),
  dmarc: seen("verified"),
  ...own,
})

const row = (own: Partial<DomainRow> = {}) =>
  testDomain("acme.test", { window_began_at: isoFrom(BEGAN), ...own })

const step = (before: DomainRow, saw: RecordChecks, hours: number) =>
  transition(before, expectedRecords(before, [key], PLACE), saw, BEGAN + hours * HOUR)

describe("a pending domain", () => {
  test("is verified by four records, whatever the optional ones are", () => {
    const { changes, event } = step(row(), checks({ return_path: seen("missing") }), 1)
    expect([changes.status, event]).toEqual(["verified", "verified"])
  })

  test.each(["missing", "mismatch", "pending"] as const)("is not by one that is %s", (status) => {
    expect(step(row(), checks({ spf: seen(status) }), 1)).toMatchObject({
      changes: {},
      event: null,
    })
  })

  test("waits for a provider that keeps identities of its own", () => {
    const waiting = row({ provider_identity_status: "pending" })
    expect(step(waiting, checks(), 1).event).toBeNull()
    const accepted = row({ provider_identity_status: "success", provider_dkim_status: "success" })
    expect(step(accepted, checks(), 1).event).toBe("verified")
  })

  test("fails at 72 hours while another project has the name", () => {
    const there = (hours: number) =>
      transition(row(), expectedRecords(row(), [key], PLACE), checks(), BEGAN + hours * HOUR, true)
    expect(there(1)).toMatchObject({ event: null, changes: { warning: expect.any(String) } })
    expect(there(72)).toMatchObject({ event: "verification_failed", changes: { status: "failed" } })
  })

  test("fails at 72 hours and not before, and not when all is there at last", () => {
    const without = checks({ dkim: seen("missing") })
    expect(step(row(), without, 71.9).event).toBeNull()
    expect(step(row(), without, 72)).toMatchObject({
      changes: { status: "failed", failed_at: isoFrom(BEGAN + 72 * HOUR) },
      event: "verification_failed",
    })
    expect(step(row(), checks(), 72).event).toBe("verified")
  })
})

describe("a verified domain", () => {
  const good = row({ status: "verified", records: checks() })
  const lacking = row({
    status: "verified",
    missing_since: isoFrom(BEGAN),
    warning: "Missing: spf",
    records: checks({ spf: { ...seen("missing"), missing_since: isoFrom(BEGAN) } }),
  })

  test("is told to have lost a record once", () => {
    const { changes, event, missing } = step(good, checks({ spf: seen("missing") }), 0)
    expect([event, missing, changes.missing_since]).toEqual(["degraded", ["spf"], isoFrom(BEGAN)])
    expect(step(lacking, checks({ spf: seen("missing") }), 24).event).toBeNull()
  })

  test("is told of each record that it loses, and each has 48 hours of its own", () => {
    const another = checks({ dkim: seen("missing") })
    const both = checks({ ...another, spf: seen("mismatch") })
    const second = step(lacking, both, 24)
    expect([second.event, second.missing]).toEqual(["degraded", ["spf", "dkim"]])
    expect(second.lost).toEqual({ spf: isoFrom(BEGAN), dkim: isoFrom(BEGAN + 24 * HOUR) })
    const exchanged = step(lacking, another, 24)
    expect(exchanged.event).toBe("degraded")
    expect(exchanged.changes).toMatchObject({ missing_since: isoFrom(BEGAN + 24 * HOUR) })
    const after = row({
      status: "verified",
      ...exchanged.changes,
      records: kept(lacking, another, exchanged.lost),
    })
    expect(step(after, another, 50)).toMatchObject({
      event: null,
      changes: { warning: exchanged.changes.warning },
    })
    expect(step(after, another, 72).changes.status).toBe("pending")
  })

  test("is not told once more when nobody spoke about the record in between", () => {
    const silent = checks({ spf: seen("pending") })
    const { changes, lost } = step(lacking, silent, 10)
    const after = row({ status: "verified", ...changes, records: kept(lacking, silent, lost) })
    expect(step(after, checks({ spf: seen("missing") }), 20)).toMatchObject({
      event: null,
      changes: { missing_since: isoFrom(BEGAN) },
    })
  })

  test("of an earlier version keeps the moment of its loss", () => {
    const old = row({ ...lacking, records: checks({ spf: seen("missing") }) })
    expect(step(old, checks({ spf: seen("missing") }), 30)).toMatchObject({
      event: null,
      changes: { missing_since: isoFrom(BEGAN) },
    })
  })

  test("goes back to pending after 48 hours, with a window of its own", () => {
    const { changes, event } = step(lacking, checks({ spf: seen("missing") }), 48)
    expect(event).toBeNull()
    expect(changes).toMatchObject({
      status: "pending",
      verified_at: null,
      window_began_at: isoFrom(BEGAN + 48 * HOUR),
    })
  })

  test("loses nothing by silence, nor is it mended by it", () => {
    const silent = checks({ spf: seen("pending") })
    expect(step(good, silent, 100)).toMatchObject({ event: null, missing: [] })
    expect(step(good, silent, 100).changes.status).toBeUndefined()
    const { changes, event } = step(lacking, silent, 100)
    expect([changes, event]).toEqual([{ missing_since: isoFrom(BEGAN) }, null])
    expect(kept(good, silent).spf?.status).toBe("verified")
    expect(kept(row({ records: checks() }), silent).spf?.status).toBe("pending")
  })

  test("is mended by the record", () => {
    expect(step(lacking, checks(), 40).changes).toMatchObject({
      warning: null,
      missing_since: null,
    })
  })
})

describe("the next check", () => {
  test("comes every minute ×5, 5 min ×12, 30 min ×20, then 3 h until 72 h", () => {
    const gaps = OFFSETS.map((offset, at) => (offset - (OFFSETS[at - 1] ?? 0)) / 60)
    expect(gaps.slice(0, 37)).toEqual([
      ...Array<number>(5).fill(1),
      ...Array<number>(12).fill(5),
      ...Array<number>(20).fill(30),
    ])
    expect(new Set(gaps.slice(37, -1))).toEqual(new Set([180]))
    expect(OFFSETS.at(-1)).toBe(72 * 3600)
  })

  const next = (own: Partial<DomainRow>, at: number, keys = [key]) =>
    nextCheck(row(own), keys, BEGAN + at)

  test("of a pending domain is the next of these, of a failed one none", () => {
    expect(next({}, 0)).toBe(isoFrom(BEGAN + 60_000))
    expect(next({}, 60_100)).toBe(isoFrom(BEGAN + 120_000))
    expect(next({}, 5 * 60_000)).toBe(isoFrom(BEGAN + 10 * 60_000))
    expect(next({}, 72 * HOUR - 500)).toBe(isoFrom(BEGAN + 72 * HOUR))
    expect(next({ status: "failed" }, 0)).toBeNull()
  })

  test("of a verified one is a day away, or where its grace ends", () => {
    expect(next({ status: "verified" }, 0)).toBe(isoFrom(BEGAN + 24 * HOUR))
    const lacking = { status: "verified", missing_since: isoFrom(BEGAN) } as const
    expect(next(lacking, 30 * HOUR)).toBe(isoFrom(BEGAN + 48 * HOUR))
  })

  test("comes soon while another key's record is waited for", () => {
    const waiting = { ...key, state: "pending" as const, created_at: isoFrom(BEGAN) }
    expect(next({ status: "verified" }, 0, [key, waiting])).toBe(isoFrom(BEGAN + 60_000))
  })
})
