import { expect, test } from "bun:test"
import { root } from "./migrations"
import { noPostgres } from "./postgres"
import { sizes } from "./sizes"

/** What the command ends with, started as a developer starts it: without what this run has set. */
async function run(...args: string[]) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(BELFRY_|DATABASE_)/.test(name))
  const env = Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]))
  const cmd = [process.execPath, ...args]
  const child = Bun.spawn({ cmd, cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, text: stdout + stderr }
}

test("the test command refuses a flag that it does not know, and runs nothing", async () => {
  const { code, text } = await run("test/harness/run.ts", "--fast", "lib")
  expect(code).toBe(2)
  expect(text.trim()).toBe(
    "unknown option --fast. Usage: bun run test [--full] [PART OF A PATH ...]",
  )
})

test.skipIf(!sizes.own_server || noPostgres())(
  "a plain `bun test` of a Postgres suite starts its own server",
  async () => {
    const { code, text } = await run("test", "./test/store/migrate.postgres.test.ts")
    expect(text).toMatch(/\n [1-9]\d* pass\n 0 fail\n/)
    expect(code).toBe(0)
  },
)
