import { expect, test } from "bun:test"
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sleep } from "../../../src/core/time"
import { writeSteadily } from "../../../src/operations/backup/create-backup"
import { leftover } from "../../harness/leftovers"

const folder = () => leftover(mkdtempSync(join(tmpdir(), "belfry-steady-")))

test("files come and go while they are brought to disk, and none is made", async () => {
  const [first = "", second = ""] = ["a", "b"].map((name) => join(folder(), name))
  const stop = writeSteadily([first, second])
  for (let at = 0; at < 20; at++) {
    appendFileSync(at < 10 ? first : second, Buffer.alloc(64 * 1024))
    if (at === 15) rmSync(first)
    await sleep(10)
  }
  await stop()
  expect([existsSync(first), existsSync(second)]).toEqual([false, true])
})

test("what the disk says is told to the caller that stops it", async () => {
  const dir = folder()
  const path = join(dir, "no-file")
  mkdirSync(path)
  const stop = writeSteadily([path])
  await sleep(20)
  expect(stop()).rejects.toMatchObject({ code: "EISDIR" })
  await stop().catch(() => {})
  expect(readdirSync(dir)).toEqual(["no-file"])
})
