import { expect, test } from "bun:test"
import { existsSync, mkdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { belfry, freshHome, onTerminal } from "./belfry"

test("init makes a key once, and later says that all is there", async () => {
  const data_dir = join(freshHome(), "data")
  const init = () => belfry(["init", "--data-dir", data_dir, "--json"])
  const first = JSON.parse((await init()).out)
  expect(first).toMatchObject({ created: true, data_dir })
  expect(first.api_key).toMatch(/^svc_live_[0-9A-Za-z]{57}$/)
  expect(statSync(join(data_dir, "master.key")).mode & 0o777).toBe(0o600)

  const again = await init()
  expect(again.exit).toBe(0)
  expect(JSON.parse(again.out)).toEqual({ ...first, api_key: null, created: false })
})

test("migrate says what it applied, and the second time nothing", async () => {
  const data_dir = join(freshHome(), "data")
  const migrate = async () =>
    JSON.parse((await belfry(["migrate", "--data-dir", data_dir])).out) as { applied: string[] }
  expect((await migrate()).applied.length).toBeGreaterThan(0)
  expect(await migrate()).toEqual(expect.objectContaining({ engine: "sqlite", applied: [] }))
})

test("migrate --dry-run lists what is missing, and makes nothing", async () => {
  const data_dir = join(freshHome(), "data")
  const migrate = async (...words: string[]) =>
    JSON.parse((await belfry(["migrate", "--data-dir", data_dir, ...words])).out)
  const { pending } = await migrate("--dry-run")
  expect(pending.length).toBeGreaterThan(0)
  expect(existsSync(data_dir)).toBe(false)
  expect((await migrate()).applied).toEqual(pending)
  expect(await migrate("--dry-run")).toEqual({ engine: "sqlite", pending: [] })
})

test("init --quiet prints the key, which is shown this once, and later nothing", async () => {
  const words = ["init", "--quiet", "--data-dir", join(freshHome(), "data")]
  expect((await belfry(words)).out).toMatch(/^svc_live_[0-9A-Za-z]{57}\n$/)
  expect((await belfry(words)).out).toBe("")
})

test("the next step of init serves the same data", async () => {
  const home = freshHome()
  const config = join(home, "belfry.toml")
  await Bun.write(config, "")
  const words = ["init", "--config", config, "--data-dir", `${home}/a b`, "--set", "log.level=warn"]
  const { out } = await onTerminal([...words, "--no-color"])
  const next = `→ belfry serve --data-dir '${home}/a b' --set log.level=warn --config ${config}`
  expect(out.replaceAll("\r\n", "")).toContain(next)
})

test("a folder that cannot be written is 74", async () => {
  const { exit, err } = await belfry(["init", "--data-dir", "/dev/null/data"])
  expect([exit, JSON.parse(err).error.code]).toEqual([74, "storage"])
})

test("all faults of the settings are told at once, the nearest name with each", async () => {
  const env = { BELFRY_LOG_LEVL: "info", BELFRY_HTTP_LISTEN: "nowhere" }
  const { exit, err } = await belfry(["init"], { env })
  expect(exit).toBe(2)
  const { faults } = JSON.parse(err).error.details
  expect(faults).toHaveLength(2)
  expect(faults.join("\n")).toContain("did you mean BELFRY_LOG_LEVEL?")
})

test("--config names a file of settings, and a missing one is told", async () => {
  const home = freshHome()
  mkdirSync(join(home, "etc"))
  const file = join(home, "etc", "belfry.toml")
  await Bun.write(file, '[log]\nlevel = "debug"\n')
  const get = (path: string) => belfry(["config", "get", "log.level", "--config", path])
  expect((await get(file)).out).toBe("debug\n")
  expect((await get(`${file}.not`)).exit).toBe(2)
})
