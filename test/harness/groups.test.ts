import { expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { stages } from "./groups"
import { leftover } from "./leftovers"
import { root } from "./migrations"

/** A tree of these files, whose texts are given by their paths. */
function treeOf(files: Record<string, string>): string {
  const root = leftover(mkdtempSync(join(tmpdir(), "belfry-groups-")))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

const TREE = {
  "test/harness/store.ts": "",
  "test/harness/service.ts": 'import { testStore } from "./store"',
  "test/mail/fixture.ts": 'export { service } from "../harness/service"',
  "test/mail/talk.ts": 'import "../harness/store"',
  "test/mail/mail.test.ts": 'import { service } from "./fixture"',
  "test/mail/stored.test.ts": 'import { service } from "./fixture"',
  "test/mail/only.postgres.test.ts": "",
  "test/jobs/started.test.ts": 'const program = join(root, "test/mail/talk.ts")',
  "test/jobs/pure.test.ts": 'import { parse } from "../../src/store"\nconst store = "store"',
  "test/jobs/only.sqlite.test.ts": 'import { service } from "../mail/fixture"',
  "test/jobs/later.test.ts": 'import { service } from "../mail/fixture"\nclock.read = () => 0',
  "test/cli/cli.test.ts": 'import { service } from "../mail/fixture"',
  "test/scenarios/story.test.ts": "",
}

const groupsOf = (wanted: string[], full = false) => {
  const groups = stages(treeOf(TREE), wanted, full).flat()
  return new Map(groups.map(({ name, files }) => [name, files]))
}

test("on Postgres, too, runs what opens a store in an area of the database, and each feature's story", () => {
  const groups = groupsOf([])
  expect(groups.get("on Postgres")).toEqual([
    "test/jobs/started.test.ts",
    "test/mail/mail.test.ts",
    "test/mail/only.postgres.test.ts",
  ])
  expect(groups.get("on SQLite")).toEqual([
    "test/cli/cli.test.ts",
    "test/jobs/only.sqlite.test.ts",
    "test/jobs/pure.test.ts",
    "test/jobs/started.test.ts",
    "test/mail/mail.test.ts",
    "test/mail/stored.test.ts",
  ])
  expect(groups.get("scenarios on the binary")).toEqual(["test/scenarios/story.test.ts"])
})

test("everything that opens a store runs on both engines in a full run, or by its name", () => {
  expect(groupsOf([], true).get("on Postgres")).toContain("test/mail/stored.test.ts")
  expect(groupsOf(["test/mail"]).get("on Postgres")).toContain("test/mail/stored.test.ts")
})

test("a file that changes what its whole process sees has a global object of its own", () => {
  const groups = groupsOf([])
  expect(groups.get("alone on SQLite")).toEqual(["test/jobs/later.test.ts"])
  expect(groups.get("alone on Postgres")).toEqual(["test/jobs/later.test.ts"])
})

test("each feature has its story on both engines: the file of its name, or one of the list", () => {
  const files = (full: boolean) => {
    const groups = stages(root, [], full).flat()
    const on_postgres = groups.filter(({ engine }) => engine === "postgres")
    return new Set(on_postgres.flatMap((group) => group.files.map((path) => path.split("/")[1])))
  }
  expect([...files(false)].sort()).toEqual([...files(true)].sort())
})

test("each process has a server of its own, and knows its engine before any other import", async () => {
  const told = async (env: Record<string, string>) => {
    const program = `import "${join(import.meta.dir, "own-server.ts")}"
      const { BELFRY_TEST_POSTGRES, DATABASE_URL } = process.env
      console.log(BELFRY_TEST_POSTGRES, DATABASE_URL)`
    const child = Bun.spawn([process.execPath, "-e", program], { env, stderr: "inherit" })
    return (await child.stdout.text()).trim()
  }
  const servers = { BELFRY_TEST_POSTGRES: "postgres://one postgres://two" }
  const on = (engine: string, id: string) =>
    told({ ...servers, BELFRY_TEST_ENGINE: engine, BUN_TEST_WORKER_ID: id })
  expect(await on("postgres", "1")).toBe("postgres://one postgres://one")
  expect(await on("postgres", "2")).toBe("postgres://two postgres://two")
  expect(await on("postgres", "3")).toBe("postgres://one postgres://one") // in place of one that died
  expect(await on("sqlite", "2")).toBe("postgres://two undefined")
  expect(await told({})).toBe("undefined undefined")
})
