import { expect, spyOn, test } from "bun:test"
import type { Workers } from "../../src/core/workers"
import { parse } from "../../src/mailbox/mailbox"

/** Threads whose tasks end when the test says so. */
function heldWorkers() {
  const running: (() => void)[] = []
  let most = 0
  const run = () =>
    new Promise<never>((resolve) => {
      running.push(() => resolve(undefined as never))
      most = Math.max(most, running.length)
    })
  const workers: Workers = { run, close: async () => {} }
  const endOne = () => running.shift()?.()
  return { workers, running, endOne, mostAtOnce: () => most }
}

const MAIL = { project_id: "one", raw: Buffer.from("Subject: x\r\n\r\n") }

test("heavy mails hold one thread at a time, and not all that waits is taken", async () => {
  const { workers, running, endOne, mostAtOnce } = heldWorkers()
  const looks = Array.from({ length: 52 }, () => parse(workers, MAIL))
  const busy = looks.pop()?.catch((error) => [error.code, error.details.reason])
  expect(await busy).toEqual(["service_unavailable", "busy"])
  for (let left = looks.length; left > 0; left--) {
    while (running.length === 0) await Bun.sleep(0)
    endOne()
  }
  await Promise.all(looks)
  expect(mostAtOnce()).toBe(1)
})

test("of many projects no more wait than a hundred", async () => {
  const { workers, running, endOne } = heldWorkers()
  const mail = (number: number) => ({ ...MAIL, project_id: `project ${number}` })
  const looks = Array.from({ length: 102 }, (_, number) => parse(workers, mail(number)))
  const busy = looks.pop()?.catch((error) => [error.code, error.details.reason])
  expect(await busy).toEqual(["service_unavailable", "busy"])
  for (let left = looks.length; left > 0; left--) {
    while (running.length === 0) await Bun.sleep(0)
    endOne()
  }
  await Promise.all(looks)
})

test("the looks of another project wait for one look of each project, however many", async () => {
  const { workers, running, endOne } = heldWorkers()
  const many = Array.from({ length: 50 }, () => parse(workers, MAIL))
  const other = parse(workers, { ...MAIL, project_id: "other" })
  for (let ended = 0; ended < 2; ended++) {
    while (running.length === 0) await Bun.sleep(0)
    endOne()
  }
  await other
  for (const _ of many.slice(1)) {
    while (running.length === 0) await Bun.sleep(0)
    endOne()
  }
  await Promise.all(many)
})

test("a look that fails lets the next one in", async () => {
  const run = () => Promise.reject(new Error("the thread ended"))
  const workers: Workers = { run, close: async () => {} }
  const ended = await Promise.allSettled([parse(workers, MAIL), parse(workers, MAIL)])
  expect(ended.map(({ status }) => status)).toEqual(["rejected", "rejected"])
})

test("a look whose request is over by its turn is left out", async () => {
  const { workers, running, endOne } = heldWorkers()
  const first = parse(workers, MAIL)
  const late = parse(workers, MAIL).catch((error) => error.details.reason)
  while (running.length === 0) await Bun.sleep(0)
  const later = performance.now() + 31_000
  const passed = spyOn(performance, "now").mockImplementation(() => later)
  try {
    const next = parse(workers, MAIL)
    endOne()
    await first
    expect(await late).toBe("busy")
    while (running.length === 0) await Bun.sleep(0)
    endOne()
    await next
  } finally {
    passed.mockRestore()
  }
})
