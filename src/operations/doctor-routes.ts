import { resolve } from "node:path"
import { Type as t } from "@sinclair/typebox"
import { settings } from "../core/config"
import { type AnyRoute, consoleRow, route } from "../http/route"
import { flag, maybe, text, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { type DoctorParts, examine } from "./doctor"
import { RUN_ID } from "./server-run"

const DoctorReport = t.Object(
  {
    ok: flag(true, "No check failed."),
    data_dir: text("/var/lib/belfry", "The data folder on the server's machine."),
    run_id: text("01a219c4-cc8e-7715-a2f6-4e7f069eba59", "Another one after each start."),
    checks: t.Array(
      t.Object({
        name: text("disk"),
        outcome: word(["pass", "warn", "fail"]),
        detail: text("61.2 GB free, the database has 840 MB, growing by 12 MB a day"),
        fix: maybe(text("Free space on the disk, or shorten `retention` of the projects.")),
      }),
    ),
  },
  { title: "DoctorReport" },
)

export interface DoctorRouteParts extends Omit<DoctorParts, "min_free_mb"> {
  store: Store
}

/** For the operator of this instance. */
export const doctorRoutes = ({ store, health, disk }: DoctorRouteParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", "/v1/admin/doctor", "role:operator"),
    response: DoctorReport,
    summary: "Check the instance: database, jobs, mail servers, disk with its forecast, invariants",
    description:
      "Only for operators. The forecast of the disk needs a server that has run for six hours.",
    handle: async () => {
      const { data_dir, "storage.min_free_mb": min_free_mb } = settings()
      const checks = await examine(store.read, { health, disk, min_free_mb })
      const ok = checks.every(({ outcome }) => outcome !== "fail")
      return { data: { ok, data_dir: resolve(data_dir), run_id: RUN_ID, checks } }
    },
  }),
]
