import { Type as t } from "@sinclair/typebox"
import { settings } from "../core/config"
import { type AnyRoute, consoleRow, route } from "../http/route"
import { flag, maybe, text, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { type DoctorParts, examine } from "./doctor"

const DoctorReport = t.Object(
  {
    ok: flag(true, "No check failed."),
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
      const min_free_mb = settings()["storage.min_free_mb"]
      const checks = await examine(store.read, { health, disk, min_free_mb })
      return { data: { ok: checks.every(({ outcome }) => outcome !== "fail"), checks } }
    },
  }),
]
