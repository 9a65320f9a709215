import { Type as t } from "@sinclair/typebox"
import { fail } from "../../core/errors"
import { type Cursors, listPage, pageQuery } from "../../http/page"
import { type AnyRoute, consoleRow, route } from "../../http/route"
import { recordInAccounts } from "../../identity/users"
import { Job } from "../../jobs/schemas"
import { count, flag, id, time } from "../../lib/record-fields"
import { listInMemory } from "../../store/rows"
import type { Store } from "../../store/store"
import { requestBackup } from "./backup-job"
import type { Backups } from "./create-backup"

const BackupRecord = t.Object(
  {
    id: id(),
    size: count(73_400_320, "Bytes of the archive."),
    verified: flag(true, "The copy was checked when it was made, and its archive is readable."),
    missing: t.Optional(
      count(
        2,
        "Attachments and received mails that it lacks, because they were missing or damaged. Absent where it has all.",
      ),
    ),
    created_at: time(),
  },
  { title: "Backup" },
)

export interface BackupRouteParts {
  store: Store
  cursors: Cursors
  backups: Backups
}

const BACKUPS = "/v1/admin/backups"

const backupQuery = pageQuery({})

/** For the operator of this instance. No backup is readable by HTTP. */
export const backupRoutes = ({ store, cursors, backups }: BackupRouteParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", BACKUPS, "role:operator"),
    response: BackupRecord,
    summary: "List the backups of this instance",
    description:
      "Only for operators. The newest is first. The archives themselves are readable only on the machine.",
    query: backupQuery,
    handle: async (call) => {
      const all = await backups.list()
      const rows = listInMemory(all, {
        nameOf: (backup) => backup.id,
        order: "falling",
        missing: () => fail("not_found", "There is no such backup."),
      })
      return listPage(call, cursors, rows, ({ path: _, missing, ...record }) =>
        missing === 0 ? record : { ...record, missing },
      )
    },
  }),
  route({
    ...consoleRow("POST", BACKUPS, "role:operator", 201),
    response: Job,
    errors: ["conflict"],
    summary: "Make a backup now",
    description:
      "Only for operators. Answers with a job, whose progress is in bytes. Its result has the `id`, the `size` and `verified` of the backup.",
    handle: async ({ caller }) => ({
      data: await store.tx(async (tx) => {
        const job = await requestBackup(tx)
        const entry = { action: "backup.requested", target: { type: "job", id: job.id } }
        if (caller.user_id) await recordInAccounts(tx, caller.user_id, caller, entry)
        return job
      }),
    }),
  }),
]
