import { expect, test } from "bun:test"
import { trialWords } from "../../cli/local/upgrade-trial"

test("a trial has its own folder for everything that it may remove, whatever the server's settings say", () => {
  const words = ["--set", "backup.dir=/mnt/backups", "--set", "backup.schedule=hourly"]
  const all = trialWords({ folder: "/copy", words })
  const pairs = all.filter((word) => word.includes("=")).map((word) => word.split("="))
  expect(Object.fromEntries(pairs)).toMatchObject({
    "backup.dir": "/copy/backups",
    "backup.schedule": "off",
    "storage.blobs.dir": "/copy/blobs",
    "storage.sqlite.path": "/copy/belfry.db",
    database_url: "none",
  })
})
