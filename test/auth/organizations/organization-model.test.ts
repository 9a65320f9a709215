import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { decodeJwt } from "jose"
import { memberships } from "../../../src/auth/organizations/tables"
import type { TestUser } from "../../harness/application"
import type { Reply } from "../../harness/client"
import fc from "../../harness/properties"
import { sharedService } from "../../harness/shared-service"
import { sizes } from "../../harness/sizes"
import { ORGANIZATIONS, organizationShop } from "./organization-shop"

const service = await sharedService()

const SWITCH = "/v1/auth/sessions/switch-organization"
const REFRESH = "/v1/auth/sessions/refresh"

const USUAL = ["make", "make", "add", "add", "role", "role", "role", "remove", "remove"] as const
const OTHERS = ["leave", "delete", "switch", "refresh", "show"] as const

/** Numbers are places in the lists of users and organizations. */
const act = fc.noBias(
  fc.record({
    what: fc.constantFrom(...USUAL, ...OTHERS),
    by_server: fc.boolean(),
    who: fc.nat(),
    whom: fc.nat(),
    where: fc.nat(),
    role: fc.constantFrom("owner", "owner", "admin", "member", "guest"),
  }),
)

type Act = typeof act extends fc.Arbitrary<infer One> ? One : never

interface ModelUser extends TestUser {
  environment: "live" | "test"
  active: string
}

interface ModelOrganization {
  id: string
  environment: "live" | "test"
  is_default: boolean
  is_deleted: boolean
  roles: Map<string, string>
}

/** What should be, and the status that each act should bring. */
class Model {
  readonly organizations: ModelOrganization[] = []
  readonly users: ModelUser[] = []

  add(id: string, environment: "live" | "test", is_default = false): ModelOrganization {
    const made = { id, environment, is_default, is_deleted: false, roles: new Map() }
    this.organizations.push(made)
    return made
  }

  /** Few, so that much happens in each. */
  recent(): ModelOrganization[] {
    const own = this.organizations.filter((one) => !one.is_deleted && !one.is_default).slice(-3)
    return own.length > 0 ? own : this.organizations
  }

  of({ id }: ModelUser): ModelOrganization[] {
    return this.organizations.filter((one) => one.roles.has(id))
  }

  /** 404 where nothing is, 403 for users without the right, else 200. */
  reach(
    by: ModelUser | null,
    { is_deleted, roles, environment }: ModelOrganization,
    rights: string[],
  ): number {
    if (is_deleted) return 404
    if (!by) return 200
    const role = roles.get(by.id)
    if (by.environment !== environment) return 404
    if (role === undefined) return 403
    return rights.length === 0 || rights.includes(role) ? 200 : 403
  }

  isLastOwner({ roles }: ModelOrganization, user_id: string): boolean {
    return (
      roles.get(user_id) === "owner" &&
      [...roles.values()].filter((role) => role === "owner").length === 1
    )
  }

  setRole(by: ModelUser | null, where: ModelOrganization, whom: ModelUser, role: string): number {
    const reached = this.reach(by, where, ["admin", "owner"])
    if (reached !== 200) return reached
    const before = where.roles.get(whom.id)
    if (before === undefined) return 404
    if (this.isBeyond(by, where, [before, role])) return 403
    if (role !== "owner" && this.isLastOwner(where, whom.id)) return 409
    where.roles.set(whom.id, role)
    return 200
  }

  isBeyond(by: ModelUser | null, { roles }: ModelOrganization, touched: string[]): boolean {
    return by !== null && roles.get(by.id) !== "owner" && touched.includes("owner")
  }

  remove(by: ModelUser | null, where: ModelOrganization, whom: ModelUser): number {
    const reached = this.reach(by, where, ["admin", "owner"])
    if (reached !== 200) return reached
    const role = where.roles.get(whom.id)
    if (role === undefined) return 404
    return this.isBeyond(by, where, [role]) ? 403 : this.takeOut(where, whom)
  }

  takeOut(where: ModelOrganization, whom: ModelUser): number {
    if (where.is_deleted || !where.roles.has(whom.id)) return 404
    if (where.is_default || this.isLastOwner(where, whom.id)) return 409
    where.roles.delete(whom.id)
    return 200
  }

  join(where: ModelOrganization, whom: ModelUser, role: string): number {
    if (where.is_deleted || whom.environment !== where.environment) return 404
    if (where.roles.has(whom.id)) return 409
    where.roles.set(whom.id, role)
    return 201
  }

  delete(by: ModelUser | null, where: ModelOrganization): number {
    const reached = this.reach(by, where, ["owner"])
    if (reached !== 200) return reached
    if (where.is_default) return 409
    where.is_deleted = true
    where.roles.clear()
    return 200
  }
}

test("whatever users and servers do, members, owners, totals and tokens are as a model has them", async () => {
  const shop = await organizationShop(service)
  const model = new Model()
  for (const environment of ["live", "test"] as const) {
    const { default_organization_id: id } = await shop.application.environment(environment)
    const home = model.add(id, environment, true)
    for (let n = 0; n < 3; n++) {
      const user = await shop.user({ environment })
      model.users.push({ ...user, environment, active: id })
      home.roles.set(user.id, "member")
    }
  }
  const seen = new Map<string, number>()
  for (const next of fc.sample(act, sizes.organization_acts)) {
    const status = await perform(shop, model, next)
    seen.set(`${next.what} ${status}`, (seen.get(`${next.what} ${status}`) ?? 0) + 1)
  }
  for (const usual of ["make 201", "add 201", "role 200", "role 409", "remove 200", "delete 200"])
    expect([usual, seen.has(usual)]).toEqual([usual, true])
  const mine = eq(memberships.project_id, shop.project.project_id)
  const rows = await service.store.read.select().from(memberships).where(mine)
  const shown = rows.map((row) => `${row.organization_id} ${row.user_id} ${row.role}`).sort()
  const wanted = model.organizations.flatMap(({ id, roles }) =>
    [...roles].map(([user_id, role]) => `${id} ${user_id} ${role}`),
  )
  expect(shown).toEqual(wanted.sort())
  expect(await shop.wrongTotals()).toEqual([])
}, 300_000)

const pick = <One>(list: One[], place: number): One => list[place % list.length] as One

type Acted = [answer: Reply, status: number]

/** Does it, and compares the answer. */
async function perform(
  { server, application }: Awaited<ReturnType<typeof organizationShop>>,
  model: Model,
  { what, by_server, who, whom, where, role }: Act,
): Promise<number> {
  const user = pick(model.users, who)
  const target = pick(model.users, whom)
  const place = pick(where % 5 === 0 ? model.organizations : model.recent(), where)
  const [by, caller] = by_server ? [null, server] : [user, user]
  const one = `${ORGANIZATIONS}/${place.id}`
  const member = `${one}/members/${target.id}`
  const acts = {
    make: async (): Promise<Acted> => {
      const { environment } = user
      const made = await caller.post(ORGANIZATIONS, { name: `O${who % 99}`, environment })
      const organization = model.add(made.body.data.id, environment)
      if (by) organization.roles.set(by.id, "owner")
      return [made, 201]
    },
    add: async (): Promise<Acted> => [
      await server.post(`${one}/members`, { user_id: target.id, role }),
      model.join(place, target, role),
    ],
    role: async (): Promise<Acted> => [
      await caller.patch(member, { role }),
      model.setRole(by, place, target, role),
    ],
    remove: async (): Promise<Acted> => [
      await caller.remove(member),
      model.remove(by, place, target),
    ],
    leave: async (): Promise<Acted> => {
      const reached = model.reach(user, place, [])
      const left = await user.post(`${one}/leave`)
      return [left, reached === 200 ? model.takeOut(place, user) : reached]
    },
    delete: async (): Promise<Acted> => [await caller.remove(one), model.delete(by, place)],
    show: async (): Promise<Acted> => {
      const shown = await caller.get(one)
      const { member_count } = shown.body.data ?? {}
      if (shown.status === 200) expect(member_count).toBe(place.roles.size)
      return [shown, model.reach(by, place, [])]
    },
    switch: async (): Promise<Acted> => {
      const reached = model.reach(user, place, [])
      const moved = await user.post(SWITCH, { organization_id: place.id })
      if (reached === 200) user.active = place.id
      return [moved, reached]
    },
    refresh: async (): Promise<Acted> => {
      const { refresh_token } = user
      const home = model.organizations.find(
        (one) => one.is_default && one.environment === user.environment,
      )
      const stays = model.of(user).some(({ id }) => id === user.active)
      if (home && !stays) user.active = home.id
      return [await application.app(user.environment).post(REFRESH, { refresh_token }), 200]
    },
  }
  const [answer, status] = await acts[what]()
  expect([what, answer.status]).toEqual([what, status])
  if (["switch", "refresh"].includes(what) && status === 200) compareToken(model, user, answer)
  return status
}

/** The organizations of a token are those of the model. */
function compareToken(model: Model, user: ModelUser, { body }: Reply): void {
  const { access_token, refresh_token } = body.data.tokens
  user.refresh_token = refresh_token
  const claims = decodeJwt(access_token)
  const orgs = claims.orgs as { id: string; role: string }[]
  expect([claims.org_id, orgs[0]?.id]).toEqual([user.active, user.active])
  const own = model.of(user).map(({ id, roles }) => `${id} ${roles.get(user.id)}`)
  const named = orgs.map(({ id, role }) => `${id} ${role}`).sort()
  if (own.length <= 50) expect(named).toEqual(own.sort())
  else expect([named.length, claims.orgs_truncated]).toEqual([50, true])
}
