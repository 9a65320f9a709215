import { expect, test } from "bun:test"
import { localSettings } from "../../cli/local/settings"

/** Earlier versions try this one on a copy, before they let it take their place: `migrate`, then `serve`. */
const TRIED = [
  "database_url=none",
  "database_direct_url=none",
  "http.listen=127.0.0.1:0",
  "smtp.submission.listen=127.0.0.1:0",
  "smtp.submission.implicit_listen=127.0.0.1:0",
  "smtp.inbound.listen=127.0.0.1:0",
  "mailbox.listen=127.0.0.1:0",
  "storage.ballast_mb=0",
  "storage.sqlite.path=/copy/belfry.db",
  "storage.blobs.dir=/copy/blobs",
  "backup.dir=/copy/backups",
  "backup.schedule=off",
]

test("the words with which an earlier version tries this one are settings, and one that has gone is told", () => {
  const environment = { HOME: "/home/a", BELFRY_UPGRADE_TRIAL: "500ms" }
  const set = [...TRIED, "upgrade.trial=60s"]
  const { values, gone } = localSettings({}, { dataDir: "/copy", set }, {}, environment)
  expect(values).toMatchObject({ database_url: null, "backup.schedule": "off" })
  expect(gone).toEqual([
    "upgrade.trial (environment BELFRY_UPGRADE_TRIAL)",
    "upgrade.trial (flag --set upgrade.trial)",
  ])
})
