import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { localSettings } from "../../cli/local/settings"
import { requireUser } from "../../cli/local/upgrade"
import { leftover } from "../harness/leftovers"

test("an upgrade by another user than that of the data is refused", () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-user-")))
  const own = process.getuid?.() ?? 0
  expect(() => requireUser(data_dir)).not.toThrow()
  expect(() => requireUser(data_dir, own + 1)).toThrow(`runs as the user ${own + 1}`)
})

test("the database of an upgrade is the one that the environment of the server names", () => {
  const environment = { DATABASE_URL: "postgres://db.test/belfry" }
  const options = { dataDir: tmpdir() }
  expect(localSettings({}, options).values.database_url).toBeNull()
  const { values } = localSettings({}, options, {}, environment)
  expect(values).toMatchObject({ database_url: environment.DATABASE_URL, data_dir: tmpdir() })
})
