import type * as audit from "../audit-log/audit-log"
import type { SystemMail } from "../identity/system-mail"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { noticeSchedule } from "../jobs/work-item"
import type { Store, Tx } from "../store/store"
import { mailAdmins } from "../tenancy/members"
import { recordChange } from "./health"
import type { Credentials } from "./provider"
import type { ConfigRow } from "./tables"

type Change = "created" | "updated" | "deleted"

interface ProviderChanged {
  account_id: string
  project_id: string
  /** Its provider and its name. */
  config: string
  change: Change
  by: string
  /** Names alone: the mail tells no value. */
  fields: string[]
}

/** Tells the admins of a project that somebody changed how its push messages leave (contract 40, section 3). */
export const providerChanged: JobKind<ProviderChanged> = {
  name: "provider.changed",
  schedule: noticeSchedule,
}

/** A configuration, with what its sealed part holds. */
export interface OpenedConfig {
  row: ConfigRow
  credentials: () => Credentials
}

/** Writes a change into the audit log. Of push, where one key speaks for every device, the admins are told. */
export async function noteChange(
  tx: Tx,
  by: audit.By,
  change: Change,
  { before, after }: { before?: OpenedConfig; after?: OpenedConfig },
  credentials_changed = false,
): Promise<void> {
  const rows = { ...(before && { before: before.row }), ...(after && { after: after.row }) }
  await recordChange(tx, by, `provider.${change}`, rows, credentials_changed)
  const { row } = (after ?? before) as OpenedConfig
  const { account_id, project_id, kind, provider, name } = row
  const { type, name: who } = by.actor
  if (kind !== "push_provider" || type === "system") return
  const payload: ProviderChanged = {
    ...{ account_id, project_id, config: `${provider} (${name})`, change },
    by: `${ACTORS[type]} ${who ?? ""}`.trim(),
    fields: after ? fieldsThatDiffer(before, after) : [],
  }
  await enqueue(tx, providerChanged, { payload, project_id })
}

const ACTORS = { key: "The API key", user: "", local: "The command line of the server", system: "" }

function fieldsThatDiffer(before: OpenedConfig | undefined, after: OpenedConfig): string[] {
  const [old, new_] = [before && fieldsOf(before), fieldsOf(after)]
  const names = Object.keys({ ...old, ...new_ })
  return names.filter((name) => JSON.stringify(old?.[name]) !== JSON.stringify(new_[name]))
}

function fieldsOf({ row, credentials }: OpenedConfig): Record<string, unknown> {
  const { name, priority, enabled, settings } = row
  return { name, priority, enabled, ...settings, ...credentials() }
}

/** Mails every admin of the project. */
export const tellChange = (store: Store, mail: SystemMail): JobHandler<ProviderChanged> => ({
  run: async (changed) => {
    await store.tx((tx) => mailAdmins(tx, mail, changed, (project) => letter(project, changed)))
    return {}
  },
})

const letter = (project: string, { by, change, config, fields }: ProviderChanged) => ({
  kind: "provider_changed",
  subject: `${project}: ${config} was ${change}`,
  text: `${by} ${change} ${config}, which delivers push messages of the project ${project}.
${fields.length > 0 ? `\n  Fields: ${fields.join(", ")}\n` : ""}
This mail holds no values. The audit log of the project has the time and the address of the change
(belfry audit-log). If nobody of you made it, take the key or the person their access.
`,
})
