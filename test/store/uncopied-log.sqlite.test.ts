import { expect, test } from "bun:test"
import { mkdtempSync, readFileSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"

quietLog()

const OTHER = join(import.meta.dir, "leave-log.ts")

/** Runs processes on one file whose log is left to another tool; each says what its end did. */
function leftFile() {
  const path = join(leftover(mkdtempSync(join(tmpdir(), "belfry-left-"))), "belfry.db")
  return async (way: string) => {
    const cmd = [process.execPath, OTHER, path, way]
    const child = Bun.spawn({ cmd, stdio: ["ignore", "ignore", "ignore"] })
    const code = await child.exited
    return { code, file: Bun.hash(readFileSync(path)), log_bytes: statSync(`${path}-wal`).size }
  }
}

test("a log that is left to another tool stays, however the process ends", async () => {
  const run = leftFile()
  const { file, log_bytes: first } = await run("closed")
  let length = first
  expect(length).toBeGreaterThan(100_000)
  for (const way of ["open", "exit", "thrown"]) {
    const ended = await run(way)
    expect(ended).toMatchObject({ code: way === "thrown" ? 1 : 0, file })
    expect(ended.log_bytes).toBeGreaterThan(length)
    length = ended.log_bytes
  }
})

test("nor does the start copy it that a newer schema refuses", async () => {
  const run = leftFile()
  const { file, log_bytes } = await run("newer")
  expect(await run("refused")).toEqual({ code: 1, file, log_bytes })
})
