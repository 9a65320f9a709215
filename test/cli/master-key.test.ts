import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openSecrets } from "../../src/core/secrets"
import { quietLog } from "../harness/quiet"
import { freshHome } from "./belfry"
import { belfry } from "./lines"

quietLog()
const NEW_KEY = Buffer.alloc(32, 9).toString("base64")
const PLAIN = "planted plain text"

/** A data folder with one sealed value. */
async function sealedFolder() {
  const data_dir = join(freshHome(), "data")
  await belfry(["init", "--data-dir", data_dir])
  const secrets = openSecrets({ data_dir, master_key: null })
  using database = new Database(join(data_dir, "belfry.db"))
  const write = database.query("INSERT OR REPLACE INTO instance_values (name, value) VALUES (?, ?)")
  write.run("master_key_id", secrets.key_id)
  write.run("setup_token", secrets.seal(PLAIN, "setup_token"))
  return { data_dir, key_id: secrets.key_id, key: join(data_dir, "master.key") }
}

const admin = (data_dir: string, ...words: string[]) =>
  belfry(["admin", ...words, "--data-dir", data_dir])

test("rotate-master-key takes the key of a file, and shows neither key nor secret", async () => {
  const { data_dir, key_id, key } = await sealedFolder()
  const old = readFileSync(key, "utf8").trim()
  const file = join(data_dir, "new-key")
  writeFileSync(file, `${NEW_KEY}\n`)
  const { exit, out, err } = await admin(data_dir, "rotate-master-key", "--master-key", file)
  expect(exit).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ from: key_id, resealed: 1 })
  expect(readFileSync(key, "utf8").trim()).toBe(NEW_KEY)
  expect(readFileSync(join(data_dir, "master.key.old"), "utf8").trim()).toBe(old)
  expect(statSync(key).mode & 0o777).toBe(0o600)
  for (const secret of [NEW_KEY, old, PLAIN]) expect(out + err).not.toContain(secret)

  using database = new Database(join(data_dir, "belfry.db"))
  const [row] = database
    .query("SELECT value FROM instance_values WHERE name = 'setup_token'")
    .values()
  const secrets = openSecrets({ data_dir, master_key: null })
  expect(secrets.open(String(row?.[0]), "setup_token")).toBe(PLAIN)
})

test("a file that has no key is refused, and nothing is changed", async () => {
  const { data_dir, key } = await sealedFolder()
  const before = readFileSync(key, "utf8")
  const file = join(data_dir, "new-key")
  writeFileSync(file, "no key")
  const { exit, err } = await admin(data_dir, "rotate-master-key", "--master-key", file)
  expect(exit).toBe(5)
  expect(JSON.parse(err).error.message).toContain("32 bytes in base64")
  expect(readFileSync(key, "utf8")).toBe(before)
  expect(existsSync(join(data_dir, "master.key.next"))).toBe(false)
})

test("the key in use is no new key: exit 5, and nothing says that it was rotated", async () => {
  const { data_dir, key } = await sealedFolder()
  const { exit, out, err } = await admin(data_dir, "rotate-master-key", "--master-key", key)
  expect([exit, out]).toEqual([5, ""])
  expect(JSON.parse(err).error.message).toContain("is the key in use")
})

test("--end-links asks first", async () => {
  const { data_dir } = await sealedFolder()
  const { exit, err } = await admin(data_dir, "rotate-master-key", "--end-links")
  expect(exit).toBe(2)
  expect(JSON.parse(err).error.message).toContain("recovery codes")
})

test("lost-key lists what is gone, and --accept makes the instance work with a new key", async () => {
  const { data_dir, key } = await sealedFolder()
  rmSync(key)
  const listed = await admin(data_dir, "lost-key")
  expect([listed.exit, existsSync(key)]).toEqual([0, false])
  expect(JSON.parse(listed.out)).toMatchObject([{ column: "instance_values.value", count: 1 }])
  expect((await admin(data_dir, "lost-key", "--accept")).exit).toBe(2)
  expect((await admin(data_dir, "lost-key", "--accept", "--yes")).exit).toBe(0)
  expect(JSON.parse((await admin(data_dir, "lost-key")).out)).toEqual([])
  expect((await admin(data_dir, "rotate-master-key")).exit).toBe(0)
})

test("without the key of its database, neither serve nor init makes another one", async () => {
  const { data_dir, key, key_id } = await sealedFolder()
  rmSync(key)
  const local = ["--data-dir", data_dir]
  for (const words of [["serve", "--set", "http.listen=127.0.0.1:0"], ["init"]]) {
    const { exit, err } = await belfry([...words, ...local])
    expect([words[0], exit]).toEqual([words[0], 74])
    expect(err).toContain(`The file ${key} does not exist.`)
    expect(err).toContain("`belfry admin lost-key`")
    expect(readdirSync(data_dir).filter((name) => name.startsWith("master.key"))).toEqual([])
  }
  // Where the setting had the key, a rotation leaves the new one under this name.
  writeFileSync(`${key}.next`, `${NEW_KEY}\n`, { mode: 0o600 })
  using database = new Database(join(data_dir, "belfry.db"))
  const next = openSecrets({ data_dir, master_key: NEW_KEY })
  expect(next.key_id).not.toBe(key_id)
  database.run("UPDATE instance_values SET value = ? WHERE name = 'master_key_id'", [next.key_id])
  expect((await belfry(["init", ...local])).exit).toBe(0)
  expect(existsSync(key)).toBe(false)
})
