import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import manifest from "../../package.json" with { type: "json" }
import { NEXT_VERSION, nextRelease } from "../harness/next-release"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { ended, upgradeBox } from "./upgrade-box"

setDefaultTimeout(180_000)

const absent = noPostgres()
if (absent) note("upgrades on Postgres: start the tests by `bun run test`")

const stack = new AsyncDisposableStack()
afterAll(() => stack.disposeAsync())

test.skipIf(absent)(
  "on Postgres a sick version gives its place back, and a healthy one keeps it",
  async () => {
    const release = await nextRelease()
    const database = stack.use(await freshDatabase())
    const env = { DATABASE_URL: database.url }
    const box = stack.use(await upgradeBox({ release, fault: "sick-later", env }))
    const load = box.traffic()
    const failed = await ended(box.upgrade())
    expect(failed.stderr).toContain("upgrade_undone")
    expect(await box.served()).toBe(manifest.version)
    const pending = await box.run("migrate", "--dry-run", "--json")
    expect(JSON.parse(pending.stdout)).toEqual({ engine: "postgres", pending: [] })
    expect(await box.missing(await load.stop())).toEqual([])
    await box.stop()

    box.again({ NEXT_VERSION: "" })
    await box.served()
    const later = box.traffic()
    const done = await ended(box.upgrade())
    expect(done).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse(done.stdout)).toMatchObject({ done: true, migrations: ["9999_next"] })
    expect(await box.served()).toBe(NEXT_VERSION)
    expect(await box.missing(await later.stop())).toEqual([])
  },
)
