import { dayPurge } from "../store/old-days"
import { aiInstanceSpending, aiQuotas, aiSpending } from "./tables"

/** Each removes up to 200 counts of months long past. It returns how many went. */
export const purgeAiMonths = [
  dayPurge(aiQuotas, ["account_id", "period", "action"], "period"),
  dayPurge(aiSpending, ["project_id", "period", "action"], "period"),
  dayPurge(aiInstanceSpending, ["period"], "period"),
]
