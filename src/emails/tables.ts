import { json, key, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** Public policies of receiving domains (RFC 8461), kept for as long as they asked for. */
export const mtaStsPolicies = table("mta_sts_policies", {
  domain: key(),
  /** Of the TXT record under which the policy was fetched. */
  policy_id: text().notNull(),
  mode: text<"enforce" | "testing" | "none">().notNull(),
  /** Host names, or `*.` and the rest of one. */
  mx: json<string[]>().notNull(),
  fetched_at: time().notNull(),
  expires_at: time().notNull(),
})
life(mtaStsPolicies, { owner: "instance", ends: "after their own age" })
