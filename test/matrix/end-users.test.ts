import { beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { routeTable } from "../../src/app"
import { users } from "../../src/auth/tables"
import { isForBrowsers } from "../../src/http/cors"
import type { AnyRoute, CallerKind } from "../../src/http/route"
import { signedUp, type TestApplication } from "../harness/application"
import { callingWith, type Reply, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import {
  ask,
  type Caller,
  expectNoLeak,
  expectRefused,
  isOfAuth,
  MARK,
  nameOf,
  namesIn,
} from "./asking"
import { block, type World, world } from "./world"

const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const { store, app } = service
const routes = routeTable(service.parts)
const guarded = routes.filter(({ callers }) => !callers.includes("none"))
const named = (list: AnyRoute[]) => list.map((route) => [nameOf(route), route] as const)

/** What somebody who acts as a user must not do as them. */
const OWN_PROOFS = [
  "DELETE /v1/auth/users/me",
  "POST /v1/auth/change-password",
  "POST /v1/auth/change-email",
  "POST /v1/auth/change-email/confirm",
  "POST /v1/auth/anonymous/convert",
  "POST /v1/auth/mfa/enroll",
  "POST /v1/auth/mfa/verify-enrollment",
  "POST /v1/auth/mfa/step-up",
  "POST /v1/auth/mfa/disable",
  "POST /v1/auth/mfa/backup-codes",
  "POST /v1/auth/passkeys/register/options",
  "POST /v1/auth/passkeys/register/verify",
  "PATCH /v1/auth/passkeys/{passkey_id}",
  "DELETE /v1/auth/passkeys/{passkey_id}",
  "POST /v1/auth/sessions/switch-organization",
  "POST /v1/auth/organizations/invitations/accept",
  "DELETE /v1/auth/identities/{identity_id}",
  "POST /v1/auth/oauth/{provider}/link",
]

/** What tells the name of the application, which is the same in both environments. */
const BOTH = ["GET /v1/auth/applications/self", "GET /v1/auth/config", "POST /v1/auth/mfa/enroll"]

let theirs: World
let ours: World
let locked: World
let before: string

beforeAll(async () => {
  theirs = await world(service, MARK)
  ours = await world(service, "ours")
  locked = await world(service, "locked")
  await block(service, locked, "locked")
  before = await stateOf(theirs)
})

/** What an outsider could have changed of the application and its user. Tests make more users on the way. */
async function stateOf({ owner, account_id, project_id, shop, user, ids }: World): Promise<string> {
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  const one = `/v1/auth/applications/${shop.id}`
  const group = `/v1/auth/organizations/${ids.organization_id}`
  const paths = [
    ...[one, `${one}/keys`, `${one}/environments`, `/v1/auth/users/${user.id}`],
    ...[group, `${group}/members`, `${group}/invitations`],
  ]
  const all = await Promise.all(paths.map(async (path) => (await owner.get(path, here)).body.data))
  return JSON.stringify(all, (name, value) => (/^last_|^users$/.test(name) ? null : value))
}

interface Outsider {
  about: string
  kind: CallerKind
  who: Caller
}

/** Credentials of an application, and of a new user of it. */
async function credentialsOf(
  about: string,
  shop: TestApplication,
  environment: "live" | "test" = "live",
): Promise<Outsider[]> {
  const user = await signedUp(service, shop, { environment })
  return [
    { about: `${about}, public key`, kind: "app", who: shop.app(environment) },
    { about: `${about}, user`, kind: "user", who: user },
    { about: `${about}, secret`, kind: "key", who: shop.server() },
  ]
}

/** Made anew for each route, because many of them end the session that asks. */
const outsiders = async (): Promise<Outsider[]> => [
  ...(await credentialsOf("another application", theirs.other_shop)),
  ...(await credentialsOf("another project", ours.shop)),
  ...(await credentialsOf("another environment", theirs.shop, "test")).filter(
    ({ kind }) => kind !== "key", // a secret is of both environments
  ),
]

const admits = (route: AnyRoute, kind: CallerKind, who: string) =>
  route.callers.includes(kind) && (!who.endsWith("secret") || isOfAuth(route))

describe.each(named(guarded))("%s", (_, route) => {
  test("is closed to credentials that the row does not list", async () => {
    for (const { about, kind, who } of await credentialsOf("own", theirs.shop)) {
      if (admits(route, kind, about)) continue
      const origin = { origin: "https://app.example.test" }
      const answer = await ask(route, who, theirs.ids, origin)
      const is_key = route.public_key_only && kind === "key"
      const refused = is_key ? [401, "unauthorized"] : [403, "forbidden"]
      expect([about, ...refusal(answer)]).toEqual([about, ...refused])
      expectNoLeak(answer)
      const shown = answer.headers.get("access-control-allow-origin")
      if (!isForBrowsers(route)) expect(shown).toBeNull()
    }
  })

  test("tells other applications, environments and projects nothing", async () => {
    for (const { about, kind, who } of await outsiders()) {
      if (!admits(route, kind, about)) continue
      const answer = await ask(route, who, theirs.ids)
      const is_of_both = about.startsWith("another environment") && BOTH.includes(nameOf(route))
      if (!is_of_both) expectNoLeak(answer)
      const is_named = namesIn(route, about.endsWith("secret") ? "key" : kind).length > 0
      if (is_named) expect([about, answer.status]).toEqual([about, 404])
    }
  })

  test("is closed while the account is locked", async () => {
    const { shop, user } = locked
    const all: Outsider[] = [
      { about: "public key", kind: "app", who: shop.app() },
      { about: "user", kind: "user", who: user },
      { about: "secret", kind: "key", who: shop.server() },
    ]
    for (const { who } of all)
      expectRefused(await ask(route, who, locked.ids), 403, "account_locked")
  })
})

const forUsers = guarded.filter(({ callers }) => callers.includes("user"))

describe.each(named(forUsers))("%s", (_, route) => {
  test("is closed to a user who is suspended, and to one beside a key of elsewhere", async () => {
    const user = await signedUp(service, theirs.shop)
    const beside = async (key: string) => ask(route, user, theirs.ids, { "x-application-key": key })
    const foreign = [theirs.shop.keys.test, theirs.other_shop.keys.live, ours.shop.keys.live]
    const answers: Reply[] = []
    for (const key of foreign) answers.push(await beside(key))
    await store.tx((tx) =>
      tx.update(users).set({ status: "suspended" }).where(eq(users.id, user.id)),
    )
    answers.push(await ask(route, user, theirs.ids))
    for (const answer of answers) expectRefused(answer, 401, "unauthorized")
  })
})

const proofs = guarded.filter((route) => OWN_PROOFS.includes(nameOf(route)))

test.each(named(proofs))("%s is closed to somebody who acts as the user", async (_, route) => {
  const acting = await signedUp(service, theirs.shop, { act: { id: "key", reason: "help" } })
  const answer = await ask(route, acting, theirs.ids)
  expectRefused(answer, 403, "forbidden")
  expect(answer.body.error.details.reason).toBe("impersonated")
})

const forApps = guarded.filter(({ callers }) => callers.includes("app"))

test.each(named(forApps))(
  "%s asks a legacy key for its environment, or needs none",
  async (_, route) => {
    const answer = await ask(route, theirs.shop.app("legacy"), theirs.ids)
    if (!route.any_environment) expectRefused(answer, 400, "environment_required")
    else expect(answer.body.error?.code).not.toBe("environment_required")
  },
)

const open = routes.filter(
  ({ callers }) => callers.includes("none") && !callers.includes("console"),
)

test.each(named(open))(
  "%s tells nobody anything for a credential of an application",
  async (_, route) => {
    const secret = callingWith(app, { "x-application-secret": theirs.other_shop.secret })
    for (const who of [secret, ours.shop.app(), ours.user]) {
      const answer = await ask(route, who, { ...theirs.ids, token: "no-such-token", name: "x" })
      expectNoLeak(answer)
    }
  },
)

test("nothing of theirs was changed by anybody's try", async () => {
  expect(before).toContain(MARK)
  expect(await stateOf(theirs)).toBe(before)
})
