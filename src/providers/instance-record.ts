import type { Reader } from "../store/store"
import { INSTANCE } from "./callback-token"
import type { record } from "./config-record"
import { instanceRefusal } from "./refusals"
import { emailRouting } from "./routing"
import { instanceRefusals } from "./tables"

/** What this process met of the instance's own provider. */
export interface InstanceTrouble {
  provider: string
  reason: string
  since: string
}

/** Asks for the trouble that is no refused login: that one is in the database. */
export type FindInstanceTrouble = () => InstanceTrouble | undefined

type Shown = ReturnType<typeof record>

/**
 * The instance's own provider as a project sees it that has no other, and only while it has trouble:
 * whose mail waits has to see why. What the operator has set up stays theirs.
 */
export async function instanceRecord(
  db: Reader,
  project_id: string,
  findTrouble: FindInstanceTrouble | undefined,
): Promise<Shown | undefined> {
  if ((await emailRouting(db, project_id)).length > 0) return undefined
  const refusal = await instanceRefusal(db)
  const [row] = refusal ? await db.select().from(instanceRefusals) : []
  if (row) return shown({ ...row, since: row.began_at, next_probe_at: row.paused_until })
  const trouble = findTrouble?.()
  return trouble && shown({ ...trouble, next_probe_at: null })
}

const shown = ({
  provider,
  reason,
  since,
  next_probe_at,
}: InstanceTrouble & { next_probe_at: string | null }): Shown => ({
  id: INSTANCE,
  kind: "email_provider",
  provider,
  name: INSTANCE,
  priority: 0,
  enabled: true,
  status: "error",
  last_error: reason,
  next_probe_at,
  credentials: {},
  settings: {},
  callback_url: null,
  created_at: since,
  updated_at: since,
})
