import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { demandUser } from "../../cli/local/upgrade"
import { leftover } from "../harness/leftovers"

test("an upgrade by another user than that of the data is refused", () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-user-")))
  const own = process.getuid?.() ?? 0
  expect(() => demandUser(data_dir)).not.toThrow()
  expect(() => demandUser(data_dir, own + 1)).toThrow(`runs as the user ${own + 1}`)
})
