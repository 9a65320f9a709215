import { describe, expect, test } from "bun:test"
import { millis } from "../../../src/core/time"
import type { Wish } from "../../../src/emails/providers/lane"
import { Places } from "../../../src/emails/providers/places"
import { isHold, Lanes, type Place } from "../../../src/emails/smtp/permits"
import type { Hold } from "../../../src/jobs/holds"
import { movableClock } from "../../harness/clock"

const clock = movableClock()
const TROUBLE = { trouble: "421 4.7.0 too much" }

const lanesOf = ({ per_domain, concurrency }: { per_domain: number; concurrency: number }) =>
  new Lanes({ per_domain, places: new Places(concurrency) })

/** As many as are let in now. */
function fill(lanes: Lanes, domain: string, wish: Wish = {}): Place[] {
  const places: Place[] = []
  for (;;) {
    const entered = lanes.enter(domain, wish)
    if (isHold(entered)) return places
    entered.began = millis()
    places.push(entered)
  }
}

function refused(lanes: Lanes, domain: string): Hold {
  const entered = lanes.enter(domain)
  if (!isHold(entered)) throw new Error("there was room")
  return entered
}

const secondsOf = ({ until }: Hold) => (Date.parse(until ?? "") - millis()) / 1000

describe("a domain", () => {
  test("begins with two at a time, and has its five after three successes", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    const first = fill(lanes, "b.test")
    expect(first).toHaveLength(2)
    for (const place of first) lanes.leave(place, "fine")
    expect(fill(lanes, "b.test")).toHaveLength(4)
    expect(fill(lanes, "c.test")).toHaveLength(2) // each has its own
  })

  test("gives who finds no room a time of his own, and says why", () => {
    const lanes = lanesOf({ per_domain: 2, concurrency: 20 })
    fill(lanes, "b.test")
    const times = Array.from({ length: 50 }, () => refused(lanes, "b.test").until)
    expect(new Set(times).size).toBe(50)
    expect(times.toSorted()).toEqual(times)
    expect(refused(lanes, "b.test").reason).toContain("2 messages at a time")
  })

  test("with a million waiting costs no memory, and nobody is sent further than ten minutes", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    fill(lanes, "b.test")
    for (let n = 0; n < 1_000_000; n++) lanes.enter("b.test")
    expect(secondsOf(refused(lanes, "b.test"))).toBeLessThanOrEqual(600)
  })

  test("that asks for less is left alone, then given one at a time, and earns the rest back", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    for (const place of fill(lanes, "b.test")) lanes.leave(place, "fine")
    const places = fill(lanes, "b.test")
    for (const place of places) lanes.leave(place, TROUBLE) // four at once are one sign
    const hold = refused(lanes, "b.test")
    expect(hold.reason).toContain("421 4.7.0 too much")
    expect(secondsOf(hold)).toBeGreaterThan(25)
    expect(secondsOf(hold)).toBeLessThan(40)

    clock.advance({ seconds: 31 })
    expect(fill(lanes, "b.test")).toHaveLength(2)
  })

  test("that goes on asking for less waits twice as long each time, a quarter of an hour at most", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    const pauses: number[] = []
    for (let n = 0; n < 8; n++) {
      const [place, ...others] = fill(lanes, "b.test")
      if (!place) throw new Error("no room")
      for (const other of others) lanes.leave(other, "nothing")
      clock.advance({ seconds: 1 })
      lanes.leave(place, TROUBLE)
      const seconds = Math.round(secondsOf(refused(lanes, "b.test")))
      pauses.push(seconds)
      clock.advance({ seconds: seconds + 1 })
    }
    expect(pauses).toEqual([30, 60, 120, 240, 480, 900, 900, 900])
    const once = fill(lanes, "b.test")
    expect(once).toHaveLength(1)
    for (let n = 0; n < 10; n++) {
      for (const place of n === 0 ? once : fill(lanes, "b.test")) lanes.leave(place, "fine")
    }
    expect(fill(lanes, "b.test")).toHaveLength(2)
  })

  test("that is slow shares half of all places with the others that are", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 8 })
    for (const name of ["a.test", "b.test", "c.test", "quick.test"]) {
      for (const place of fill(lanes, name)) lanes.leave(place, "fine")
    }
    const slow = ["a.test", "b.test", "c.test"].flatMap((name) => fill(lanes, name))
    clock.advance({ seconds: 2 })
    expect(slow).toHaveLength(12) // all at once: nobody knew
    for (const place of [slow[0], slow[4], slow[8]]) if (place) lanes.leave(place, "nothing")
    for (const name of ["a.test", "b.test", "c.test"]) {
      const { reason } = refused(lanes, name)
      expect(reason).toBe(
        `${name} is slow. Slow and new servers may use only a part of the delivery slots`,
      )
    }
    expect(fill(lanes, "quick.test")).toHaveLength(4)
  })

  test("that has taken nothing yet counts as slow, however many of its kind there are", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    for (const place of fill(lanes, "quick.test")) lanes.leave(place, "fine")
    const names = Array.from({ length: 12 }, (_, n) => `new${n}.test`)
    const taken = names.flatMap((name) => fill(lanes, name))
    expect(taken).toHaveLength(10)
    expect(refused(lanes, "new11.test").reason).toContain("new11.test has accepted no message yet")
    expect(fill(lanes, "quick.test")).toHaveLength(4)
  })

  test("that is new has room for one project when those of another take their half", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    const theirs = Array.from({ length: 20 }, (_, n) =>
      fill(lanes, `theirs${n}.test`, { project_id: "project_1", is_urgent: n > 10 }),
    )
    expect(theirs.flat()).toHaveLength(15) // urgent mail may go further
    for (const place of theirs.flat().slice(10)) lanes.leave(place, "nothing")
    expect(fill(lanes, "theirs.test", { project_id: "project_1" })).toEqual([])
    expect(fill(lanes, "ours.test", { project_id: "project_2" })).toHaveLength(2)
  })

  test("that is new waits in line for another that is new, and not for one that hangs", async () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 4 })
    const [first, second] = fill(lanes, "a.test")
    if (!first || !second) throw new Error("no room")
    const waiting = lanes.enterInLine("b.test")
    lanes.leave(first, "nothing")
    expect(isHold(await waiting)).toBe(false)
    clock.advance({ seconds: 2 })
    const away = await lanes.enterInLine("c.test")
    expect(isHold(away) && away.reason).toContain("c.test has accepted no message yet")
  })

  test("lets urgent mail in beside the rest, but not through a pause", () => {
    const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
    const places = fill(lanes, "b.test")
    expect(fill(lanes, "b.test", { is_urgent: true })).toHaveLength(2)
    for (const place of places) lanes.leave(place, TROUBLE)
    expect(fill(lanes, "b.test", { is_urgent: true })).toEqual([])
  })
})

test("a hundred thousand domains are not all remembered", () => {
  const lanes = lanesOf({ per_domain: 5, concurrency: 20 })
  for (let n = 0; n < 100_000; n++) {
    for (const place of fill(lanes, `${n}.test`)) lanes.leave(place, "fine")
  }
  expect(lanes.size).toBeLessThanOrEqual(10_000)
})
