import { beforeEach, describe, expect, test } from "bun:test"
import { BodyMemory, type BodyReservation } from "../../src/http/body-memory"
import { quietLog } from "../harness/quiet"

const logged = quietLog()
const KB = 1024
const MB = 1024 * KB

let at = 0
let room = new BodyMemory({ now: () => at })
beforeEach(() => {
  at = 0
  room = new BodyMemory({ now: () => at })
})

const reasonOf = (run: () => unknown): object | undefined => {
  try {
    run()
  } catch (error) {
    const { code, details, headers } = error as { code: string; details: object; headers: object }
    return { code, ...details, ...headers }
  }
  return undefined
}

const refused = (reason: string) => ({
  code: "service_unavailable",
  reason,
  retry_after: 1,
  "retry-after": "1",
})

/** A body of this declared size, of which so much has come. */
function arriving(owner: string, declared: number, come: number): BodyReservation {
  const place = room.enter(owner)
  place.follow(declared, () => {})
  place.take(come)
  return place
}

describe("large bodies", () => {
  test("have 96 MB together, as they come and not as they are declared", () => {
    for (let one = 0; one < 100; one++) arriving(`p${one}`, 32 * MB, 0)
    for (let one = 0; one < 4; one++) arriving(`q${one}`, 32 * MB, 24 * MB)
    const late = arriving("late", 2 * MB, 0)
    expect(reasonOf(() => late.take(1))).toEqual(refused("body_memory"))
  })

  test("of one project have a quarter of that", () => {
    const places = [1, 2, 3].map(() => arriving("p", 8 * MB, 8 * MB))
    const fourth = arriving("p", 8 * MB, 0)
    expect(reasonOf(() => fourth.take(1))).toEqual(refused("project_body_memory"))
    expect(reasonOf(() => arriving("q", 24 * MB, 24 * MB))).toBeUndefined()
    places[0]?.leave()
    expect(reasonOf(() => fourth.take(8 * MB))).toBeUndefined()
  })

  test("may be as large as a route allows when their project sends no other", () => {
    const alone = arriving("p", 32 * MB, 20 * MB)
    expect(reasonOf(() => alone.take(12 * MB))).toBeUndefined()
    expect(reasonOf(() => arriving("p", 2 * MB, 1))).toEqual(refused("project_body_memory"))
  })

  test("make room when their requests are answered, once", () => {
    const first = arriving("p", 32 * MB, 24 * MB)
    for (const owner of ["q", "r", "s"]) arriving(owner, 24 * MB, 24 * MB)
    first.leave()
    first.leave()
    expect(reasonOf(() => arriving("t", 24 * MB, 24 * MB))).toBeUndefined()
    expect(reasonOf(() => arriving("u", 2 * MB, 1))).toEqual(refused("body_memory"))
  })

  test("that came first go on, and those that came later are refused", () => {
    const all = Array.from({ length: 16 }, () => arriving("p", 30 * MB, 0))
    const others = Array.from({ length: 16 }, (_, one) => arriving(`p${one}`, 30 * MB, 0))
    for (let turn = 0; turn < 30; turn++) {
      for (const place of [...others, ...all].reverse()) reasonOf(() => place.take(MB))
    }
    expect(all.map(({ bytes }) => bytes / MB)).toEqual([30, ...Array(15).fill(0)])
    const got = others.map(({ bytes }) => bytes / MB)
    expect(got).toEqual([30, 30, ...Array(14).fill(0)])
  })

  test("that are not declared are small ones until they have more than 1 MB", () => {
    for (const owner of ["q", "r", "s"]) arriving(owner, 32 * MB, 32 * MB)
    const chunked = arriving("p", 0, MB)
    expect(reasonOf(() => chunked.take(1))).toEqual(refused("body_memory"))
    const small = Array.from({ length: 32 }, (_, one) => `small${one}`)
    expect(reasonOf(() => small.map((owner) => arriving(owner, MB, MB)))).toBeUndefined()
  })

  test("leave the small ones their own 32 MB", () => {
    for (const owner of ["p", "q", "r"]) arriving(owner, 32 * MB, 32 * MB)
    for (let one = 0; one < 32; one++) arriving("anybody", MB, MB)
    expect(reasonOf(() => arriving("anybody", KB, KB))).toEqual(refused("body_memory"))
  })

  test("have what the setting leaves", () => {
    room = new BodyMemory({ memory_mb: 64, now: () => at })
    expect(reasonOf(() => arriving("p", 32 * MB, 32 * MB))).toBeUndefined()
    expect(reasonOf(() => arriving("q", 2 * MB, 1))).toEqual(refused("body_memory"))
  })

  test("are not driven out by others while they come", () => {
    const largest = arriving("p", 32 * MB, 30 * MB)
    for (const owner of ["q", "r", "s", "t"]) reasonOf(() => arriving(owner, 24 * MB, 22 * MB))
    expect(reasonOf(() => largest.refuseLost())).toBeUndefined()
  })
})

describe("a body slower than 64 KB a second", () => {
  const full = () => ["p", "q", "r"].map((owner) => arriving(owner, 32 * MB, 32 * MB - 1))

  test("keeps its place while nobody else needs it", () => {
    const [slow] = full()
    at = 3600_000
    expect(reasonOf(() => slow?.take(1))).toBeUndefined()
  })

  test("loses it to another one, and its reader is told", () => {
    const lost: string[] = []
    for (const owner of ["slow", "q", "r"]) {
      const place = room.enter(owner)
      place.follow(32 * MB, () => lost.push(owner))
      place.take(32 * MB - 1)
      if (owner !== "slow") place.arrived()
      at = 1000
    }
    const waiting = arriving("late", 2 * MB, 0)
    at = 2000
    expect(reasonOf(() => waiting.take(MB))).toEqual(refused("body_memory"))
    at = 2001
    expect(reasonOf(() => waiting.take(MB))).toBeUndefined()
    expect(lost).toEqual(["slow"])
  })

  test("hears so, and holds nothing any more", () => {
    const [slow] = full()
    at = 2001
    expect(reasonOf(() => arriving("late", 2 * MB, 2 * MB))).toBeUndefined()
    expect(reasonOf(() => slow?.take(1))).toEqual(refused("slow_body"))
    expect(reasonOf(() => slow?.arrived())).toEqual(refused("slow_body"))
    slow?.leave()
    expect(slow?.bytes).toBe(0)
  })

  test("is judged by its last two seconds, not by a fast beginning", () => {
    const places = [30, 30, 30].map((size, one) => arriving(`p${one}`, 32 * MB, size * MB))
    for (at = 1000; at <= 10_000; at += 1000) {
      places[0]?.take(64 * KB)
      places[1]?.take(KB)
      places[2]?.take(64 * KB)
    }
    at = 10_000
    expect(reasonOf(() => arriving("late", 8 * MB, 8 * MB))).toBeUndefined()
    expect(places.map((place) => reasonOf(() => place.refuseLost()))).toEqual([
      undefined,
      refused("slow_body"),
      undefined,
    ])
  })

  test("gives way to its own project where that has its quarter", () => {
    const slow = arriving("p", 16 * MB, 16 * MB)
    at = 5000
    expect(reasonOf(() => arriving("p", 16 * MB, 16 * MB))).toBeUndefined()
    expect(reasonOf(() => slow.refuseLost())).toEqual(refused("slow_body"))
  })

  test("that has come whole stays", () => {
    for (const place of full()) place.arrived()
    at = 5000
    expect(reasonOf(() => arriving("late", 2 * MB, 2 * MB))).toEqual(refused("body_memory"))
  })
})

describe("small bodies", () => {
  test("of one project may fill their share, and give way when another needs a quarter of it", () => {
    const greedy = Array.from({ length: 32 }, () => arriving("greedy", MB, MB))
    expect(reasonOf(() => arriving("greedy", MB, 1))).toEqual(refused("body_memory"))
    expect(reasonOf(() => arriving("other", MB, MB))).toBeUndefined()
    expect(greedy.filter((place) => reasonOf(() => place.refuseLost()))).toHaveLength(1)
  })

  test("of many projects are refused when their share is full", () => {
    for (let one = 0; one < 32; one++) arriving(`p${one}`, MB, MB)
    expect(reasonOf(() => arriving("late", KB, KB))).toEqual(refused("body_memory"))
  })
})

test("the operator is told once a minute, with the setting", () => {
  const before = logged().length
  const push = () => {
    for (const owner of ["p", "q", "r", "s", "t"]) {
      reasonOf(() => arriving(owner, 24 * MB, 24 * MB).arrived())
      reasonOf(() => arriving(owner, 24 * MB, 1))
    }
  }
  push()
  at = 59_000
  push()
  expect(logged().slice(before)).toHaveLength(1)
  expect(logged().at(-1)).toContain("http.body_memory_mb")
  at = 60_000
  push()
  expect(logged().slice(before)).toHaveLength(2)
})
