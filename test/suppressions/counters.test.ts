import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { isoFrom, millis } from "../../src/core/time"
import { totals } from "../../src/store/counters"
import {
  type NewSuppression,
  purgeExpired,
  suppressAll,
  unsuppress,
} from "../../src/suppressions/suppressions"
import {
  SUPPRESSION_ORIGINS,
  SUPPRESSION_REASONS,
  suppressions,
} from "../../src/suppressions/tables"
import { movableClock } from "../harness/clock"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const clock = movableClock()

const one = fc.record({
  channel: fc.constantFrom("email" as const, "sms" as const),
  address: fc.constantFrom("a@x.test", "B@x.test", "b@x.test", "c@x.test", "+4915112345678"),
  reason: fc.constantFrom(...SUPPRESSION_REASONS),
  origin: fc.constantFrom(...SUPPRESSION_ORIGINS),
  scope: fc.constantFrom(
    { type: "project" as const, key: null },
    { type: "category" as const, key: "news" },
    { type: "broadcast" as const, key: null },
  ),
  days: fc.option(fc.integer({ min: 1, max: 90 })),
})

type Made = typeof one extends fc.Arbitrary<infer Value> ? Value : never

const step = fc.oneof(
  fc.record({ do: fc.constant("add" as const), list: fc.array(one, { maxLength: 8 }) }),
  fc.record({ do: fc.constant("remove" as const), one }),
  fc.record({ do: fc.constant("wait" as const), days: fc.integer({ min: 1, max: 40 }) }),
)

const asNew = ({ days, ...rest }: Made): NewSuppression => ({
  ...rest,
  expires_at: days === null ? null : isoFrom(millis() + days * 86_400_000),
})

test("totals equal a recount, whatever was added, replaced, removed and expired", async () => {
  clock.freeze()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { project_id } = await service.project()
      for (const each of steps) {
        if (each.do === "wait") {
          clock.advance({ seconds: each.days * 86_400 })
          while ((await purgeExpired(store)) > 0);
        } else {
          await store.tx(async (tx) => {
            if (each.do === "add") await suppressAll(tx, project_id, each.list.map(asNew))
            else await unsuppress(tx, project_id, each.one)
          })
        }
      }
      const ours = eq(suppressions.project_id, project_id)
      const rows = await store.read.select().from(suppressions).where(ours)
      const counted = new Map([["suppressions", rows.length]])
      for (const field of ["channel", "reason", "origin"] as const) {
        for (const row of rows) {
          const name = `suppressions.${field}.${row[field]}`
          counted.set(name, (counted.get(name) ?? 0) + 1)
        }
      }
      const kept = await totals(store.read, project_id, [
        ...["suppressions", "suppressions.channel.email", "suppressions.channel.sms"],
        ...SUPPRESSION_REASONS.map((reason) => `suppressions.reason.${reason}`),
        ...SUPPRESSION_ORIGINS.map((origin) => `suppressions.origin.${origin}`),
      ])
      const known = [...kept].filter(([, value]) => value !== 0).sort()
      const expected = [...counted].filter(([, value]) => value !== 0).sort()
      expect(known).toEqual(expected)
    }),
    { numRuns: 40 },
  )
})
