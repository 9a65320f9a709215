import { and, eq, sql } from "drizzle-orm"
import type { SystemMail } from "../identity/system-mail"
import type { JobHandler } from "../jobs/jobs"
import type { Reader, Store } from "../store/store"
import { mailAdmins } from "../tenancy/members"
import { shownId } from "./callbacks"
import { type ProviderRefused, TROUBLES } from "./health"
import type { ProviderTrouble } from "./monitor"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

/** Tells every admin of the project that a provider refuses its credentials, and what follows. */
export const notifyAdmins = (store: Store, mail: SystemMail): JobHandler<ProviderRefused> => ({
  run: async (refused) => {
    const { project_id, config_id, reason } = refused
    const ours = and(eq(providerConfigs.id, config_id), eq(providerConfigs.project_id, project_id))
    await store.tx(async (tx) => {
      const [config] = await tx.select().from(providerConfigs).where(ours)
      if (!config || config.paused_until === null) return
      const provider = `${config.provider} (${config.name})`
      await mailAdmins(tx, mail, refused, (project) => written(project, provider, reason))
    })
    return {}
  },
})

const written = (project: string, provider: string, reason: string) => ({
  kind: "provider_refused",
  subject: `${project}: ${provider} refuses its credentials`,
  text: `${provider} delivers messages of the project ${project}. It refused the stored credentials:

  ${reason}

Belfry now sends nothing through this provider. The next provider of the project delivers
the messages. If there is none, they wait, and Belfry loses none of them. Store the right credentials
(belfry providers update). Belfry then sends the waiting messages at once. Until then, one message a
minute tests whether the provider accepts the old credentials again.
`,
})

/** As a literal: a bound value would keep the database from using the partial index. */
const HAS_TROUBLE = sql`status = 'error'`

const MOST_ROWS = 1000

/**
 * What `/readyz` says of providers: which one has what trouble since when. The route is public, so
 * it names neither a project nor the words of a provider.
 */
export async function providerWarnings(db: Reader, met: ProviderTrouble[]): Promise<string[]> {
  const rows = await db.select().from(providerConfigs).where(HAS_TROUBLE).limit(MOST_ROWS)
  const kinds = new Map(met.map(({ config_id, provider, kind }) => [config_id + provider, kind]))
  const own_first = rows.toSorted((a, b) => rank(a) - rank(b))
  const lines = Map.groupBy(own_first, (row) => {
    const kind =
      row.paused_until === null
        ? (kinds.get(shownId(row) + row.provider) ?? "unreachable")
        : "refuses_login"
    return `${rank(row)}\n${row.provider}\n${TROUBLES[kind][0]}`
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
