import { sql } from "drizzle-orm"
import { INSTANCE } from "../providers/callback-token"
import { instanceRefusals, providerConfigs } from "../providers/tables"
import { TROUBLES } from "../providers/trouble-log"
import type { Reader } from "../store/store"
import type { TroubleLine } from "./providers/troubles"

/** As a literal: a bound value would keep the database from using the partial index. */
const HAS_TROUBLE = sql`status = 'error'`

const MOST_ROWS = 1000

/**
 * What `/readyz` says of providers: which one has what trouble since when. Anybody may ask there, so
 * neither a provider's words nor a project is named.
 */
export async function providerWarnings(db: Reader, met: TroubleLine[]): Promise<string[]> {
  const refusals = await db.select().from(instanceRefusals)
  const refused = refusals.map(({ provider, began_at }) =>
    line(`${provider}, the provider of this instance,`, TROUBLES.refuses_login, began_at),
  )
  const own = met.filter(({ config_id }) => config_id === INSTANCE)
  const other = own.map(({ provider, kind, since }) =>
    line(`${provider}, the provider of this instance,`, TROUBLES[kind], since),
  )
  return [...refused, ...other, ...(await ofProjects(db, met))]
}

async function ofProjects(db: Reader, met: TroubleLine[]): Promise<string[]> {
  const rows = await db.select().from(providerConfigs).where(HAS_TROUBLE).limit(MOST_ROWS)
  const kinds = new Map(met.map(({ config_id, kind }) => [config_id, kind]))
  const lines = Map.groupBy(rows, ({ id, provider, paused_until }) => {
    const kind = paused_until === null ? (kinds.get(id) ?? "unreachable") : "refuses_login"
    return `${provider}\n${TROUBLES[kind]}`
  })
  return [...lines].map(([name, some]) => {
    const [provider, trouble = ""] = name.split("\n")
    const projects = new Set(some.map(({ project_id }) => project_id)).size
    const whose = projects === 1 ? "a project" : `${projects} projects`
    const [since = ""] = some.map((row) => row.trouble_since ?? row.updated_at).sort()
    return line(`${provider}, the provider of ${whose},`, trouble, since)
  })
}

const line = (who: string, trouble: string, since: string) => `${who} ${trouble} since ${since}.`
