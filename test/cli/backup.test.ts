import { expect, test } from "bun:test"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { belfry, environment, freshHome } from "./belfry"

test("a check that Ctrl-C ends leaves the archive, and nothing beside it", async () => {
  const data_dir = join(freshHome(), "belfry")
  const local = ["--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  expect((await belfry(["init", ...local])).exit).toBe(0)
  expect((await belfry(["backup", "create", ...local])).exit).toBe(0)
  const folder = join(data_dir, "backups")
  const before = readdirSync(folder)
  const main = join(import.meta.dir, "../../cli/main.ts")
  const child = Bun.spawn([process.execPath, main, "backup", "verify", ...local], {
    env: environment(),
    stdout: "ignore",
    stderr: "pipe",
  })
  while (readdirSync(folder).length === before.length && child.exitCode === null) await Bun.sleep(1)
  child.kill("SIGINT")
  expect(await child.exited).toBe(130)
  const { error } = (await new Response(child.stderr).json()) as { error: { code: string } }
  expect(error.code).toBe("interrupted")
  expect(readdirSync(folder)).toEqual(before)
}, 60_000)
