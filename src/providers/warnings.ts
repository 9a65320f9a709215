import { sql } from "drizzle-orm"
import type { Reader } from "../store/store"
import { shownId } from "./callback-token"
import { TROUBLES } from "./health"
import type { ProviderTrouble } from "./monitor"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

/** As a literal: a bound value would keep the database from using the partial index. */
const HAS_TROUBLE = sql`status = 'error'`

const MOST_ROWS = 1000

/**
 * What `/readyz` says of providers: which one has what trouble since when. The route is public, so
 * it names neither a project nor the words of a provider.
 */
export async function providerWarnings(db: Reader, met: ProviderTrouble[]): Promise<string[]> {
  const rows = await db.select().from(providerConfigs).where(HAS_TROUBLE).limit(MOST_ROWS)
  const kinds = new Map(met.map(({ config_id, kind }) => [config_id, kind]))
  const own_first = rows.toSorted((a, b) => rank(a) - rank(b))
  const lines = Map.groupBy(own_first, (row) => {
    const kind =
      row.paused_until === null ? (kinds.get(shownId(row)) ?? "unreachable") : "refuses_login"
    return `${rank(row)}\n${row.provider}\n${TROUBLES[kind]}`
  })
  return [...lines].map(([name, some]) => {
    const [owner, provider, trouble = ""] = name.split("\n")
    const projects = new Set(some.map(({ project_id }) => project_id)).size
    const others = projects === 1 ? "a project" : `${projects} projects`
    const whose = owner === "0" ? "this instance" : others
    const [since = ""] = some.map((row) => row.trouble_since ?? row.updated_at).sort()
    return `${provider}, the provider of ${whose}, ${trouble} since ${since}.`
  })
}

const rank = ({ project_id }: ConfigRow): number => (project_id === INSTANCE ? 0 : 1)
