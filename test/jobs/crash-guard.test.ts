import { afterAll, afterEach, expect, spyOn, test } from "bun:test"
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newId } from "../../src/core/ids"
import { AloneFirst, CrashGuard } from "../../src/jobs/crash-guard"
import { READY, type WorkRow } from "../../src/jobs/work-item"
import { quietLog } from "../harness/quiet"

quietLog()

/** The times that nobody wants to sit through: a process warms up, and a row is alone for ten seconds. */
const real = globalThis.setTimeout
const hasty = (work: () => void, ms?: number) => {
  const shorter = ms === 2_000 ? 0 : ms === 10_000 ? alone_ms : ms
  return real(work, shorter)
}
let alone_ms = 10_000
const timers = spyOn(globalThis, "setTimeout").mockImplementation(hasty as typeof setTimeout)
afterAll(() => timers.mockRestore())

const folders: string[] = []
afterEach(() => {
  alone_ms = 10_000
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** Rows of a table, and the lives of the process that works on them. A life ends unless it is closed. */
function scene(count: number) {
  const folder = mkdtempSync(join(tmpdir(), "belfry-slots-"))
  folders.push(folder)
  const path = join(folder, "in-flight.slots")
  const rows: WorkRow[] = Array.from({ length: count }, () => ({
    ...{ id: newId(), created_at: "", state: READY, run_at: "", attempt: 0 },
    ...{ owner: null, lease_until: null },
  }))
  const held: string[] = []
  const idOf = (at: number) => rows[at]?.id ?? ""
  const begin = (guard: CrashGuard, ...which: number[]) => {
    for (const at of which) guard.begin(idOf(at), (rows[at]?.attempt ?? 0) + 1)
  }

  /** A process starts, and checks what the last one left. `run` works on a row alone. */
  async function life(run: (at: number, guard: CrashGuard) => Promise<void> = async () => {}) {
    const guard = new CrashGuard(path, new AloneFirst())
    const alone: number[] = []
    await guard.recover({
      ready: async (ids) => rows.filter((row) => ids.includes(row.id) && !held.includes(row.id)),
      async run(id) {
        const at = rows.findIndex((row) => row.id === id)
        alone.push(at)
        begin(guard, at)
        await run(at, guard)
      },
      hold: async (row) => void held.push(row.id),
    })
    return { guard, alone }
  }

  /** A life that ends while it works on a row alone, which `run` says by `dies`. */
  function death(
    run: (at: number, guard: CrashGuard, dies: () => Promise<never>) => Promise<void>,
  ) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const over = () => {
      resolve()
      return dies()
    }
    void life((at, guard) => run(at, guard, over))
    return promise
  }

  return {
    path,
    rows,
    idOf,
    begin,
    life,
    death,
    heldRows: () => held.map((id) => rows.findIndex((row) => row.id === id)),
  }
}

/** The process dies in the middle of the work: its promise never comes. */
const dies = () => new Promise<never>(() => {})

test("one death says nothing: the row is worked on among others", async () => {
  const { life, begin } = scene(3)
  begin((await life()).guard, 0, 1, 2)
  expect((await life()).alone).toEqual([])
})

test("what was in flight at two deaths is worked on alone, one after the other", async () => {
  const { life, begin } = scene(4)
  begin((await life()).guard, 0, 1, 2)
  begin((await life()).guard, 0, 2, 3)
  const order: string[] = []
  const { alone } = await life(async (at) => {
    order.push(`begin ${at}`)
    await Bun.sleep(1)
    order.push(`end ${at}`)
  })
  expect(alone.toSorted()).toEqual([0, 2])
  expect(order.map((line) => line.split(" ")[0])).toEqual(["begin", "end", "begin", "end"])
})

test("only deaths while it was alone count: after three the row is held, and not run any more", async () => {
  const it = scene(2)
  it.begin((await it.life()).guard, 0, 1)
  it.begin((await it.life()).guard, 0, 1)
  const ran: number[] = []
  for (let death = 0; death < 3; death++) {
    expect(it.heldRows()).toEqual([])
    await it.death(async (at, guard, dies) => {
      ran.push(at)
      if (at === 0) return dies()
      guard.end(it.idOf(at), true)
      const row = it.rows[at]
      if (row) row.attempt += 1
    })
  }
  const { alone } = await it.life()
  expect(it.heldRows()).toEqual([0])
  expect(alone).toEqual([])
  expect(ran.filter((at) => at === 0)).toHaveLength(3)
  expect(ran.filter((at) => at === 1)).toHaveLength(1) // it ended in peace, and nothing is held against it
})

test("one that has been alone least goes first, so that kills at random meet different ones", async () => {
  const it = scene(3)
  it.begin((await it.life()).guard, 0, 1, 2)
  it.begin((await it.life()).guard, 0, 1, 2)
  const first: number[] = []
  for (let death = 0; death < 6; death++) {
    await it.death((at, _guard, dies) => {
      first.push(at)
      return dies()
    })
  }
  expect(first.slice(0, 3).toSorted()).toEqual([0, 1, 2])
  expect(first.slice(3).toSorted()).toEqual([0, 1, 2])
  expect(it.heldRows()).toEqual([])
})

test("an attempt that ended before the death counts against nobody", async () => {
  const it = scene(2)
  for (let death = 0; death < 4; death++) {
    const { guard } = await it.life()
    it.begin(guard, 0, 1)
    guard.end(it.idOf(0), true)
    const [row] = it.rows
    if (row) row.attempt += 1 // as its result is written
    guard.end(it.idOf(1), false) // deferred: as if it had not begun
  }
  expect((await it.life()).alone).toEqual([])
})

test("a row that is over, or was tried since, is no suspect any more", async () => {
  const it = scene(2)
  it.begin((await it.life()).guard, 0, 1)
  it.begin((await it.life()).guard, 0, 1)
  const [row] = it.rows.splice(0, 1)
  const [other] = it.rows
  if (!row || !other) throw new Error("two rows")
  other.attempt = 1
  expect((await it.life()).alone).toEqual([])
})

test("a death before the check counts once, and forgets nothing", async () => {
  const it = scene(1)
  it.begin((await it.life()).guard, 0)
  it.begin((await it.life()).guard, 0)
  new CrashGuard(it.path, new AloneFirst()) // and this process dies at once
  new CrashGuard(it.path, new AloneFirst())
  expect((await it.life()).alone).toEqual([0])
  expect(it.heldRows()).toEqual([])
})

test("a process that stops in order leaves nothing behind", async () => {
  const it = scene(1)
  for (let stop = 0; stop < 3; stop++) {
    const { guard } = await it.life()
    it.begin(guard, 0)
    guard.close()
    guard.end(it.idOf(0), true) // a result that comes late
  }
  expect(statSync(it.path).size).toBe(0)
  expect((await it.life()).alone).toEqual([])
})

test("slots are used again: the file is as long as what was in flight at once", async () => {
  const it = scene(500)
  const { guard } = await it.life()
  for (let at = 0; at < 500; at++) {
    it.begin(guard, at)
    if (at >= 10) guard.end(it.idOf(at - 10), true)
  }
  expect(statSync(it.path).size).toBeLessThanOrEqual(12 * 24)
})

test("a file that is cut off, or holds something else, is no obstacle", async () => {
  const it = scene(2)
  it.begin((await it.life()).guard, 0, 1)
  it.begin((await it.life()).guard, 0, 1)
  truncateSync(it.path, 30)
  expect((await it.life()).alone).toEqual([0])
  writeFileSync(it.path, "no slots at all, but a text of some length that somebody put there")
  expect((await it.life()).alone).toEqual([])
})

test("a suspect that takes long keeps others waiting for ten seconds only", async () => {
  const it = scene(1)
  it.begin((await it.life()).guard, 0)
  it.begin((await it.life()).guard, 0)
  alone_ms = 5
  expect((await it.life(dies)).alone).toEqual([0])
  alone_ms = 10_000
  // It was not alone any more when this process died.
  for (let death = 0; death < 2; death++) await it.death((_at, _guard, dies) => dies())
  await it.life()
  expect(it.heldRows()).toEqual([])
})

test("a file that cannot be opened stops no work", async () => {
  const it = scene(2)
  mkdirSync(it.path)
  const { guard, alone } = await it.life()
  it.begin(guard, 0, 1)
  guard.end(it.idOf(0), true)
  guard.close()
  expect(alone).toEqual([])
})

test("a stop waits for no table whose work never began", async () => {
  const [one, other] = [scene(1), scene(1)]
  const alone_first = new AloneFirst()
  const guards = [one, other].map(({ path }) => new CrashGuard(path, alone_first))
  const recovered = guards[0]?.recover({
    ready: async () => one.rows,
    run: async () => {},
    hold: async () => {},
  })
  let is_over = false
  void recovered?.then(() => {
    is_over = true
  })
  await Bun.sleep(5)
  expect(is_over).toBe(false)
  guards[0]?.stop()
  await recovered
  expect(is_over).toBe(true)
})

test("suspects of several tables run one at a time, and everything else only after them", async () => {
  const [one, other] = [scene(1), scene(1)]
  for (const it of [one, other]) {
    it.begin((await it.life()).guard, 0)
    it.begin((await it.life()).guard, 0)
  }
  const alone_first = new AloneFirst()
  const guards = [one, other].map(({ path }) => new CrashGuard(path, alone_first))
  let running = 0
  let most = 0
  let first_done = false
  const early: boolean[] = []
  const recovered = [one, other].map(({ rows }, at) =>
    guards[at]?.recover({
      ready: async () => rows,
      async run() {
        most = Math.max(most, ++running)
        await Bun.sleep(5)
        running -= 1
        early.push(first_done)
      },
      hold: async () => {},
    }),
  )
  void recovered[0]?.then(() => {
    first_done = true
  })
  await Promise.all(recovered)
  expect(early).toEqual([false, false]) // no table goes on before the other had its suspect alone
  expect(most).toBe(1)
})
