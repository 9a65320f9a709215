import type { NewEndUser } from "../../../src/auth/end-users"
import type { EnvironmentSettings } from "../../../src/auth/environment-settings"
import { brokenIn } from "../../../src/operations/invariants"
import { newApplication, signedUp } from "../../harness/application"
import type { ProjectOptions, TestService } from "../../harness/service"

export const ORGANIZATIONS = "/v1/auth/organizations"

/** An application whose users make organizations. */
export async function organizationShop(
  service: TestService,
  { plan = "enterprise", ...settings }: Partial<EnvironmentSettings> & ProjectOptions = {},
) {
  const project = await service.project({ plan })
  const own = { organization_creation: "members" as const, ...settings }
  const application = await newApplication(service, project, { settings: own })
  const server = application.server()
  const { store } = service
  return {
    project,
    application,
    server,
    user: (wanted: NewEndUser & { environment?: "live" | "test" } = {}) =>
      signedUp(service, application, wanted),
    /** By the server, so that nobody is in it. */
    make: async (fields: object = {}): Promise<string> =>
      (await server.post(ORGANIZATIONS, { name: "Acme", ...fields })).body.data.id,
    seat: (id: string, user_id: string, role = "member") =>
      server.post(`${ORGANIZATIONS}/${id}/members`, { user_id, role }),
    /** Roles by user. */
    rolesIn: async (id: string): Promise<Record<string, string>> => {
      const { data } = (await server.get(`${ORGANIZATIONS}/${id}/members?limit=100`)).body
      return Object.fromEntries(
        data.map((row: Record<string, string>) => [row.end_user_id, row.role]),
      )
    },
    /** Totals of the project that differ from their rows. */
    wrongTotals: async (): Promise<string[]> => {
      const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
      const of = { kind: "project" as const, id: project.project_id }
      const found = await Array.fromAsync(brokenIn(look, of))
      return found.map(({ what }) => what).filter((what) => /member|organization/.test(what))
    },
  }
}

export type OrganizationShop = Awaited<ReturnType<typeof organizationShop>>
