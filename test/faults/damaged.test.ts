import { afterAll, describe, expect, test } from "bun:test"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { deferred, get, type Mail, post, problemOf, send, until } from "../scenarios/mails"
import { lean } from "../scenarios/serve"
import { freeListPage, grow, overwrite, pagesOf, workedHome } from "./damage"

const STORAGE = 74
/** Longer than the embedded mailbox lets anybody wait for the next attempt. */
const LONGEST_WAIT_MS = 6000

const worked = await workedHome()
afterAll(() => worked[Symbol.dispose]())

const TABLE = "instance_values"
const INDEX = "sqlite_autoindex_instance_values_1"
const POINTER_MAP = 2

describe("a database with a bad page is refused at start, and left as it is", () => {
  test.each<[string, (path: string) => number | undefined]>([
    ["a leaf of a table", (path) => pagesOf(path, TABLE, "leaf").at(-2)],
    ["an inner page of a table", (path) => pagesOf(path, TABLE, "internal").at(0)],
    ["an overflow page", (path) => pagesOf(path, TABLE, "overflow").at(0)],
    ["a leaf of an index", (path) => pagesOf(path, INDEX, "leaf").at(-2)],
    ["an inner page of an index", (path) => pagesOf(path, INDEX, "internal").at(0)],
    ["the list of free pages", freeListPage],
    ["the pointer map", () => POINTER_MAP],
    ["a leaf of the schema", (path) => pagesOf(path, "sqlite_schema", "leaf").at(0)],
  ])("%s", async (_, pageOf) => {
    using damaged = worked.copy()
    const page = pageOf(damaged.path)
    expect(page).toBeGreaterThan(1)
    overwrite(damaged.path, [page ?? 0])
    const before = readFileSync(damaged.path)

    const { code, stdout, message, error_code } = await damaged.refused()
    expect({ code, stdout, error_code }).toEqual({
      code: STORAGE,
      stdout: "",
      error_code: "storage",
    })
    expect(message).toContain(`${damaged.path} is damaged`)
    expect(message).toContain("restore a backup")
    expect(message).toContain("belfry restore FILE")
    expect(readFileSync(damaged.path).equals(before)).toBe(true)
  })
})

test("a file whose header is wrong is refused as no database", async () => {
  using damaged = worked.copy()
  overwrite(damaged.path, [1])
  const { code, message } = await damaged.refused()
  expect(code).toBe(STORAGE)
  expect(message).toContain("is not an SQLite database: its first bytes are wrong")
  expect(message).toContain("restore a backup")
})

test("a file that is cut off is refused, with both sizes", async () => {
  using damaged = worked.copy()
  const whole = statSync(damaged.path).size
  truncateSync(damaged.path, 40_960)
  const { code, message } = await damaged.refused()
  expect(code).toBe(STORAGE)
  expect(message).toContain(`is cut off: it should have ${whole} bytes, but it has 40960`)
})

test("a folder in place of the file is refused, with the next step", async () => {
  using damaged = worked.copy()
  rmSync(damaged.path)
  mkdirSync(damaged.path)
  const { code, message } = await damaged.refused()
  expect(code).toBe(STORAGE)
  expect(message).toContain(`${damaged.path} is a folder, but the database must be a file`)
  expect(message).toContain("storage.sqlite.path")
})

describe("a database that is lost is missed", () => {
  test.each<[string, (path: string) => void, string]>([
    ["missing", (path) => rmSync(path), "is missing"],
    ["empty", (path) => truncateSync(path, 0), "is empty"],
  ])("%s beside the mark of its first commit", async (_, lose, said) => {
    using damaged = worked.copy()
    rmSync(join(damaged.folder, "blobs"), { recursive: true })
    lose(damaged.path)
    const { code, message } = await damaged.refused()
    expect(code).toBe(STORAGE)
    expect(message).toContain(`${damaged.path} ${said}, but`)
    expect(message).toContain("database-began")
    expect(message).toContain("--new")
  })

  test("missing beside blobs, in a folder of an older version", async () => {
    using damaged = worked.copy()
    rmSync(join(damaged.folder, "database-began"))
    rmSync(damaged.path)
    const { code, message } = await damaged.refused()
    expect(code).toBe(STORAGE)
    expect(message).toContain(`there are blobs in ${join(damaged.folder, "blobs")}`)
    expect(existsSync(damaged.path)).toBe(false)
  })

  test("--new begins anew there, and is refused where a database is", async () => {
    using damaged = worked.copy()
    rmSync(damaged.path)
    {
      await using server = await startBelfry({ home: damaged.home, env: lean, args: ["--new"] })
      expect((await post(server)).status).toBe(201)
      expect((await server.request(`/v1/emails/${worked.ids[0]}`)).status).toBe(404)
    }
    const { code, message } = await damaged.refused("--new")
    expect(code).toBe(STORAGE)
    expect(message).toContain("--new works only where there is no database")
    await using again = await startBelfry({ home: damaged.home, env: lean })
    expect((await post(again)).status).toBe(201)
  })

  test("a master key alone is a new installation", async () => {
    const home = makeHome()
    try {
      const data_dir = join(home, "belfry")
      mkdirSync(data_dir)
      const key = Buffer.alloc(32, 7).toString("base64")
      writeFileSync(join(data_dir, "master.key"), `${key}\n`, { mode: 0o600 })
      const begun = await runBinary(["init", "--json", "--data-dir", data_dir], { home })
      expect(begun.code).toBe(0)
      expect(readdirSync(data_dir)).toContain("database-began")
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})

type Readiness = { status: string; checks: Record<string, string> }

const readiness = async (url: string) => {
  const response = await fetch(`${url}/readyz`)
  return { status: response.status, body: (await response.json()) as Readiness }
}

test("a page that goes bad while the server runs: not ready, told once, nothing accepted", async () => {
  using damaged = worked.copy()
  const [bad = "", good = ""] = worked.ids
  const pages = pagesOf(damaged.path, "message_contents", "overflow").slice(0, 2)
  expect(pages).toHaveLength(2)
  await using server = await startBelfry({ home: damaged.home, env: lean })
  expect((await readiness(server.url)).status).toBe(200)

  overwrite(damaged.path, pages)
  const read = await server.request(`/v1/emails/${bad}`)
  expect(read.status).toBe(503)
  expect((await problemOf(read)).code).toBe("service_unavailable")

  const { status, body } = await readiness(server.url)
  expect([status, body.checks.database]).toEqual([503, "damaged"])
  const refused = await post(server)
  expect(refused.status).toBe(503)
  expect((await problemOf(refused)).details).toMatchObject({ reason: "damaged" })
  expect((await get<Mail>(server, `/v1/emails/${good}`)).status).toBe("delivered")

  const again = await problemOf(await server.request(`/v1/emails/${bad}`))
  expect(again.details).toMatchObject({ reason: "damaged" })
  const told = server.stderr.all.filter((line) => /damaged|malformed/.test(line))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain("from a backup")
})

test.each<[string, (path: string) => void]>([
  ["removed", (path) => rmSync(path)],
  ["replaced", (path) => renameSync(path, `${path}.old`)],
])("a database that is %s while the server runs accepts nothing more", async (how, lose) => {
  using worn = worked.copy()
  await using server = await startBelfry({ home: worn.home, env: lean })
  expect((await post(server)).status).toBe(201)
  lose(worn.path)
  if (how === "replaced") copyFileSync(`${worn.path}.old`, worn.path)
  const missed = await until("the loss is seen", async () => {
    const { status, body } = await readiness(server.url)
    return status === 503 && body
  })
  expect(missed.checks.database).toBe("damaged")
  expect((await problemOf(await post(server))).details).toMatchObject({ reason: "damaged" })
  const told = server.stderr.all.filter((line) => line.includes("removed or replaced"))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain("Do not stop the server yet")
})

test("nothing is sent from a damaged database: what was sent could not be written down", async () => {
  using damaged = worked.copy()
  const [bad = ""] = worked.ids
  const pages = pagesOf(damaged.path, "message_contents", "overflow").slice(0, 2)
  await using server = await startBelfry({ home: damaged.home, env: lean })
  const id = await send(server, { to: "softbounce@mailbox.test" })
  const { attempts } = await deferred(server, id)
  overwrite(damaged.path, pages)
  expect((await server.request(`/v1/emails/${bad}`)).status).toBe(503)
  await Bun.sleep(LONGEST_WAIT_MS)
  expect((await get<Mail>(server, `/v1/emails/${id}`)).attempts).toBe(attempts)
})

test("a bad page of a large database that the start itself needs is refused all the same", async () => {
  using damaged = worked.copy()
  grow(damaged.path)
  overwrite(damaged.path, [pagesOf(damaged.path, TABLE, "internal")[0] ?? 0])
  const { code, message } = await damaged.refused()
  expect(code).toBe(STORAGE)
  expect(message).toContain(`${damaged.path} is damaged`)
  expect(message).toContain("restore a backup")
})

test("a bad page of a large database is found beside the work", async () => {
  using damaged = worked.copy()
  grow(damaged.path)
  overwrite(damaged.path, [pagesOf(damaged.path, "message_contents", "overflow")[0] ?? 0])
  await using server = await startBelfry({ home: damaged.home, env: lean })
  const found = await until("the damage is found", async () => {
    const { status, body } = await readiness(server.url)
    return status === 503 && body
  })
  expect(found.checks.database).toBe("damaged")
  expect((await post(server)).status).toBe(503)
})

test("a sound large database serves while it is checked, and says when it is sound", async () => {
  using large = worked.copy()
  grow(large.path)
  const env = { ...lean, BELFRY_LOG_LEVEL: "info" }
  await using server = await startBelfry({ home: large.home, env })
  expect((await readiness(server.url)).status).toBe(200)
  expect((await post(server)).status).toBe(201)
  await server.stderr.first((line) => line.includes("the check found no damage in the database"))
  expect((await readiness(server.url)).body.checks.database).toBe("ok")
})
