import { expect, test } from "bun:test"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { runningFolders } from "../../cli/local/find-server"
import { belfry, freshHome } from "./belfry"
import { box } from "./box"

const names = (out: string) => (JSON.parse(out) as { name: string }[]).map(({ name }) => name)

test("admin without a folder finds the server that `up` runs", async () => {
  await using server = await box()
  const { exit, out } = await belfry(["admin", "accounts"], { env: { HOME: server.home } })
  expect(exit).toBe(0)
  expect(names(out)).toEqual(["Local"])
  expect(existsSync(join(server.home, ".local/share/belfry"))).toBe(false)
})

test("admin prefers the database of its own folder to another server", async () => {
  await using server = await box()
  const env = { HOME: server.home }
  expect((await belfry(["init"], { env })).exit).toBe(0)
  const renamed = ["admin", "plan", "set", "local", "starter"]
  expect((await belfry(renamed, { env })).exit).toBe(0)
  const plans = async (...words: string[]) =>
    (JSON.parse((await belfry(["admin", "accounts", ...words], { env })).out) as { plan: string }[])
      .map(({ plan }) => plan)
      .join()
  expect(await plans()).toBe("starter")
  expect(await plans("--data-dir", server.data_dir)).toBe("enterprise")
})

test("a folder that is named is the only one meant", async () => {
  await using server = await box()
  const empty = join(freshHome(), "data")
  const words = ["admin", "accounts", "--data-dir", empty]
  const { exit, err } = await belfry(words, { env: { HOME: server.home } })
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain(`There is no database in ${empty}`)
  expect(existsSync(empty)).toBe(false)
})

test.skipIf(process.platform !== "linux")("the folders of running servers are known", async () => {
  await using server = await box()
  expect(runningFolders()).toContain(server.data_dir)
  expect(runningFolders("/proc/net")).toEqual([]) // a list that cannot be read
})
