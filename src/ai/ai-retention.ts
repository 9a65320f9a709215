import { monthPurge } from "../store/old-days"
import { aiInstanceSpending, aiQuotas, aiSpending } from "./tables"

/** Each removes up to 200 counts of months long past. It returns how many went. */
export const purgeAiMonths = [
  monthPurge(aiQuotas, ["account_id", "period", "action"]),
  monthPurge(aiSpending, ["project_id", "period", "action"]),
  monthPurge(aiInstanceSpending, ["period"]),
]
