import { expect, test } from "bun:test"
import { copyFileSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isReplaced, programOf } from "../../cli/local/server-process"
import { leftover } from "../harness/leftovers"

test("a process knows that another program took the path that it was started from", async () => {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-replaced-")))
  const [program, next] = [join(folder, "program"), join(folder, "next")]
  for (const path of [program, next]) copyFileSync("/bin/sleep", path)
  const child = Bun.spawn([program, "60"])
  try {
    const running = `/proc/${child.pid}/exe`
    const path = programOf(child.pid) ?? ""
    expect([path, isReplaced(path, running)]).toEqual([program, false])
    renameSync(next, program)
    expect([programOf(child.pid), isReplaced(program, running)]).toEqual([program, true])
    expect(isReplaced(`${program} (deleted)`, running)).toBe(true)
    rmSync(program)
    expect(isReplaced(program, running)).toBe(false)
    expect(isReplaced()).toBe(false)
  } finally {
    child.kill("SIGKILL")
    await child.exited
  }
})
