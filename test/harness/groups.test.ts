import { expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { stages } from "./groups"
import { leftover } from "./leftovers"

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
  "test/mail/stored.test.ts": 'import { service } from "./fixture"',
  "test/mail/started.test.ts": 'const program = join(root, "test/mail/talk.ts")',
  "test/mail/pure.test.ts": 'import { parse } from "../../src/store"\nconst store = "store"',
  "test/mail/only.sqlite.test.ts": 'import { service } from "./fixture"',
  "test/mail/only.postgres.test.ts": "",
  "test/cli/command.test.ts": 'import { service } from "../mail/fixture"',
  "test/scenarios/story.test.ts": "",
}

test("what opens a store runs on both engines, and everything else once", () => {
  const groups = stages(treeOf(TREE), [], false).flat()
  const of = (name: string) => groups.find((group) => group.name === name)?.files
  expect(of("on Postgres")).toEqual([
    "test/mail/only.postgres.test.ts",
    "test/mail/started.test.ts",
    "test/mail/stored.test.ts",
  ])
  expect(of("on SQLite")).toEqual([
    "test/cli/command.test.ts",
    "test/mail/only.sqlite.test.ts",
    "test/mail/pure.test.ts",
    "test/mail/started.test.ts",
    "test/mail/stored.test.ts",
  ])
  expect(of("scenarios on the binary")).toEqual(["test/scenarios/story.test.ts"])
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
