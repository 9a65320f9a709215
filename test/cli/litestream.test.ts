import { expect, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { program } from "../harness/program"
import { quietLog } from "../harness/quiet"
import { belfry, environment, freshHome } from "./belfry"

quietLog()

const SETTINGS = {
  BELFRY_STORAGE_WAL_AUTOCHECKPOINT: "0",
  BELFRY_STORAGE_MIN_FREE_MB: "0",
  BELFRY_STORAGE_BALLAST_MB: "0",
}
const FROM = "me@mailbox.test"
const ERASED = "ann-who-is-erased@mailbox.test"

/** A running server that leaves the log to Litestream. `work` demands after each command that no byte of the log was copied. */
async function uncopiedServer() {
  const data_dir = join(freshHome(), "data")
  const path = join(data_dir, "belfry.db")
  const local = ["--data-dir", data_dir]
  const env = environment(SETTINGS)
  const child = Bun.spawn([...program, "up", "--json", "--port", "0", ...local], {
    env,
    stdout: "pipe",
    stderr: "inherit",
  })
  const { value } = await child.stdout.getReader().read()
  expect(JSON.parse(new TextDecoder().decode(value))).toMatchObject({ data_dir })
  const stored = readFileSync(path)
  let length = 0
  const requireUncopied = () => {
    expect(readFileSync(path).equals(stored)).toBe(true)
    const { size } = statSync(`${path}-wal`)
    expect(size).toBeGreaterThanOrEqual(length)
    length = size
  }
  const work = async (...words: string[]) => {
    const { exit, out, err } = await belfry(words, { env })
    expect({ words, exit, err: exit === 0 ? "" : err }).toEqual({ words, exit: 0, err: "" })
    requireUncopied()
    return out
  }
  const onFolder = (...words: string[]) => work(...words, ...local)
  return {
    work,
    onFolder,
    async stop() {
      child.kill("SIGTERM")
      expect(await child.exited).toBe(0)
      requireUncopied()
    },
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

test("with storage.wal_autocheckpoint = 0 no command copies the log, beside a server or without one", async () => {
  using server = await uncopiedServer()
  const { work, onFolder } = server
  const { external_id } = JSON.parse(await work("subscribers", "create", "ann", "--email", ERASED))
  await work("emails", "send", "--from", FROM, "--to", ERASED, "--subject", "x", "--text", "x")
  const erased = JSON.parse(await work("subscribers", "erase", external_id, "--yes"))
  const logs = erased.remains.filter(({ what }: { what: string }) => what.includes("belfry.db-wal"))
  expect(logs).toMatchObject([{ until: expect.stringContaining("Litestream") }])

  const everywhere = async () => {
    await onFolder("admin", "rotate-master-key")
    await onFolder("backup", "create")
    await onFolder("db", "check")
    await onFolder("db", "stats")
    await onFolder("admin", "accounts")
    await onFolder("queue", "purge", "held_after_restore", "--dry-run")
  }
  await everywhere()
  await server.stop()
  await everywhere()
  await onFolder("admin", "lost-key")
})
