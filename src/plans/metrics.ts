import type { Limits } from "./plans"
import type { Metric } from "./quotas"

/** The limit of a month, by what it counts. */
export const LIMIT_OF = {
  email: "emails_per_month",
  push: "push_per_month",
  sms: "sms_per_month",
  in_app: "in_app_per_month",
  mau: "mau",
} as const satisfies Record<Metric, keyof Limits>

export const METRICS = Object.keys(LIMIT_OF) as Metric[]
