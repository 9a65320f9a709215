import { Database } from "bun:sqlite"
import { afterAll, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { post, reaches, send } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const STORAGE = 74

test("a second process on the same folder is refused, and told who holds it", async () => {
  await using first = await startBelfry({ env: lean })
  const second = await first.cli("up", "--json", "--port", "0", "--data-dir", first.data_dir)
  expect(second.code).toBe(STORAGE)
  expect(second.stdout).toBe("")
  const { error } = JSON.parse(second.stderr)
  expect(error).toMatchObject({ code: "storage" })
  expect(error.message).toContain(String(first.pid))
  expect(error.message).toContain("in use")
  expect((await post(first)).status).toBe(201) // the first one does not notice
})

test("the folder is free again as soon as its holder is dead, however it died", async () => {
  const home = makeHome()
  try {
    await using first = await startBelfry({ home, env: lean })
    const held = readFileSync(join(home, "belfry/belfry.db.pid"), "utf8").trim()
    expect(held).toBe(String(first.pid))
    first.kill("SIGKILL")
    await first.exited
    await using second = await startBelfry({ home, env: lean })
    expect((await post(second)).status).toBe(201)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

let used_home: string | undefined
afterAll(() => used_home && rmSync(used_home, { recursive: true, force: true }))

/** A home in whose folder `up` has run. */
async function usedHome() {
  const home = makeHome()
  await using server = await startBelfry({ home, env: lean })
  await reaches(server, await send(server), "delivered")
  return home
}

/** A copy of such a folder, and a second try at starting there. */
async function usedFolder() {
  used_home ??= await usedHome()
  const home = makeHome()
  const folder = join(home, "belfry")
  cpSync(join(used_home, "belfry"), folder, { recursive: true })
  return {
    folder,
    async start() {
      const words = ["up", "--json", "--port", "0", "--data-dir", folder]
      const { code, stdout, stderr } = await runBinary(words, { home, env: lean })
      expect({ code, stdout }).toEqual({ code: STORAGE, stdout: "" })
      const { error } = JSON.parse(stderr)
      expect(error.code).toBe("storage")
      return String(error.message)
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}

test("a file that is no database is refused, and left as it is", async () => {
  using used = await usedFolder()
  const path = join(used.folder, "belfry.db")
  const broken = readFileSync(path).fill("garbage!", 0, 4096)
  writeFileSync(path, broken)
  expect(await used.start()).toContain("is not an SQLite database")
  expect(readFileSync(path).equals(broken)).toBe(true)
})

test("the database of a newer version is refused", async () => {
  using used = await usedFolder()
  const database = new Database(join(used.folder, "belfry.db"))
  database.run("INSERT INTO belfry_migrations (tag, applied_at) VALUES ('9999_later', 1)")
  database.close()
  const message = await used.start()
  expect(message).toContain("9999_later")
  expect(message).toContain("newer version")
})

test("a master key that others may read is refused, with the remedy", async () => {
  using used = await usedFolder()
  const path = join(used.folder, "master.key")
  chmodSync(path, 0o644)
  expect(await used.start()).toContain(`chmod 600 ${path}`)
})

test("another master key is refused before anything is sealed with it", async () => {
  using used = await usedFolder()
  const path = join(used.folder, "master.key")
  writeFileSync(path, randomBytes(32).toString("base64"), { mode: 0o600 })
  expect(await used.start()).toContain("has the key")
})

test("a master key that is gone is told so, and no other one takes its place", async () => {
  using used = await usedFolder()
  const path = join(used.folder, "master.key")
  rmSync(path)
  expect(await used.start()).toContain(`The file ${path} does not exist.`)
  expect(existsSync(path)).toBe(false)
})

test("a database that another program locks: 503 with Retry-After, then work goes on", async () => {
  await using server = await startBelfry({ env: lean })
  const database = new Database(join(server.data_dir, "belfry.db"))
  database.run("PRAGMA busy_timeout = 5000")
  database.run("BEGIN IMMEDIATE")
  try {
    const refused = await post(server)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect((await server.request("/v1/emails")).status).toBe(200) // reads do not wait for it
  } finally {
    database.run("ROLLBACK")
    database.close()
  }
  await reaches(server, await send(server), "delivered")
})
