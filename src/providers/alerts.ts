import { and, eq } from "drizzle-orm"
import type { SystemMail } from "../identity/system-mail"
import { projects } from "../identity/tables"
import type { JobHandler } from "../jobs/jobs"
import type { Store } from "../store/store"
import * as people from "../tenancy/project-members"
import type { ProviderRefused } from "./health"
import { providerConfigs } from "./tables"

const MOST_ADMINS = 100

/** Tells every admin of the project that a provider refuses its credentials, and what follows. */
export const tellAdmins = (store: Store, mail: SystemMail): JobHandler<ProviderRefused> => ({
  run: async ({ account_id, project_id, config_id, reason }) => {
    await store.tx(async (tx) => {
      const ours = and(
        eq(providerConfigs.id, config_id),
        eq(providerConfigs.project_id, project_id),
      )
      const [config] = await tx.select().from(providerConfigs).where(ours)
      const [project] = await tx.select().from(projects).where(eq(projects.id, project_id))
      if (!config || config.paused_until === null || !project || project.deleting_at) return
      const part = { limit: MOST_ADMINS, offset: 0, after: undefined, before: undefined }
      const team = await people.list(tx, { account_id, project_id }, part)
      const admins = team.filter(({ role }) => role === "admin")
      const letter = written(project.name, `${config.provider} (${config.name})`, reason)
      for (const { email } of admins) {
        await mail.send(tx, { to: email, kind: "provider_refused", ...letter })
      }
    })
    return {}
  },
})

const written = (project: string, provider: string, reason: string) => ({
  subject: `${project}: ${provider} refuses its credentials`,
  text: `${provider} delivers mail of the project ${project}. It refused the stored credentials:

  ${reason}

Belfry now sends nothing through this provider. Messages go to the next provider of the project. If
there is none, they wait, and none of them is lost. Store the right credentials (belfry providers
update). Then the waiting messages go on at once. Until then, one message a minute tests whether the
provider accepts the old credentials again.
`,
})
