import { dayPurge } from "../store/old-days"
import { pushDays } from "./tables"

/** Removes up to 200 counts of days long past. Returns how many went. */
export const purgePushDays = dayPurge(pushDays, ["project_id", "day", "fact", "shard"])
