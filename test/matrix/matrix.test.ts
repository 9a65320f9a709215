import { beforeAll, describe, expect, test } from "bun:test"
import { routeTable } from "../../src/app"
import { isForBrowsers } from "../../src/http/cors"
import type { AnyRoute, CallerKind } from "../../src/http/route"
import { callingWith, complaints } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import {
  alike,
  ask,
  type Caller,
  exchanged,
  expectNoLeak,
  expectRefused,
  isOfAuth,
  withKey as keyOf,
  MARK,
  nameOf,
  namesIn,
  pathOf,
  swaps,
  withToken as tokenOf,
} from "./asking"
import { rolesFor } from "./roles"
import { type Ids, ROWS } from "./rows"
import { block, signedOut, stranger, type World, world } from "./world"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const routes = routeTable(service.parts)
const guarded = routes.filter(({ callers }) => !callers.includes("none"))
const forKeys = ({ callers }: AnyRoute) => callers.includes("key")
const isForSubscribersToo = ({ callers }: AnyRoute) => callers.includes("subscriber")
const forServers = ({ callers }: AnyRoute) => callers.includes("key") || callers.includes("console")
const forSubscribers = (route: AnyRoute) => isForSubscribersToo(route) && !forKeys(route)
const forPeople = ({ callers }: AnyRoute) => callers.includes("console")
const isOfOperator = ({ scope }: AnyRoute) => scope === "role:operator"
const isOfProject = (route: AnyRoute) => route.scope !== "role:any" && !isOfOperator(route)
const ofAccounts = guarded.filter((route) => isOfProject(route) && forServers(route))
const named = (list: AnyRoute[]) => list.map((route) => [nameOf(route), route] as const)
const scopesOf = ({ scope }: AnyRoute) => scope.split("|").filter((one) => !one.startsWith("role:"))

const { anybody } = service
const withKey = (key: string) => keyOf(service, key)
const withToken = (token: string) => tokenOf(service, token)
const withApplication = (headers: Record<string, string>) => callingWith(service.app, headers)

const NO_IDS = ["x", "instance", NOBODY.toUpperCase(), `evt_${NOBODY}`, NOBODY.replaceAll("-", "")]

let theirs: World
let ours: World
let locked: World
let suspended: World
let before: string

let turns = 0

/** The next share of a list: routes side by side meet all of it. */
function share<One>(list: readonly One[]): One[] {
  turns += 1
  return list.filter((_, at) => (at + turns) % sizes.outsider_steps === 0)
}

/** By what a route asks for. */
const lacking = new Map<string, string>()

beforeAll(async () => {
  theirs = await world(service, MARK)
  ours = await world(service, "ours")
  locked = await world(service, "locked")
  suspended = await world(service, "suspended")
  await block(service, locked, "locked")
  await block(service, suspended, "suspended")
  for (const route of guarded.filter(forKeys)) {
    lacking.set(route.scope, await theirs.keyWithout(scopesOf(route)))
  }
  before = await stateOf(theirs)
})

/** What an outsider could have changed. */
async function stateOf({
  owner,
  account_id,
  project_id,
  ids,
  inbox_token,
}: World): Promise<string> {
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  const paths = ["accounts/me/members", "accounts/me/invitations", "projects", "api-keys"]
  const mail = ["settings", "emails", "mailbox", "providers", "webhooks", "queue", "scheduled"]
  const incoming = ["inbound-emails", "inbound-routes", "suppressions", "templates"]
  const preferences = `subscribers/${ids.subscriber_id}/preferences`
  const audience = ["devices", "subscribers", "subscribers/categories", preferences]
  const own = [`projects/${project_id}/members`, `webhooks/${ids.webhook_id}/deliveries`]
  const topic = `topics/${ids.topic_key}`
  own.push("topics", `${topic}/subscribers`, `${topic}/publishes`)
  const more = [...mail, "audit-log", ...own, `jobs/${ids.job_id}`]
  const all: unknown[] = []
  for (const path of [...paths, ...incoming, ...audience, ...more]) {
    const { body } = await owner.get(`/v1/${path}`, here)
    all.push(body.data)
  }
  const { body } = await withToken(inbox_token).call("GET", "/v1/subscriber-inbox")
  all.push(body.data)
  return JSON.stringify(all, (name, value) => (/^last_|_seconds$/.test(name) ? null : value))
}

/** Who in this world may call the route, with the headers that they need, and what they are. */
function insiders(route: AnyRoute, world: World): [Caller, Ids, CallerKind][] {
  const { owner, keys, shop, user, inbox_token } = world
  const all: [Caller, Ids, CallerKind][] = [
    [owner, here(world), "console"],
    [withKey(keys.whole), {}, "key"],
    ...(isOfAuth(route) ? [[shop.server(), {}, "key"] as [Caller, Ids, CallerKind]] : []),
    [shop.app(), {}, "app"],
    [user, {}, "user"],
    [withToken(inbox_token), {}, "subscriber"],
  ]
  const admitted = all.filter(([, , kind]) => route.callers.includes(kind))
  // A device is named by them as they know it, and not by its id.
  return forServers(route) && !isOfAuth(route)
    ? admitted.filter(([, , kind]) => !isProgram(kind))
    : admitted
}

const isProgram = (kind: CallerKind) => ["app", "user", "subscriber"].includes(kind)

const here = ({ account_id, project_id }: World) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

test("every route has a row, and every row a route", () => {
  const others = routes.filter((route) => !isOfAuth(route))
  expect(Object.keys(ROWS).sort()).toEqual(others.map(nameOf).sort())
})

describe.each(named(guarded))("%s", (_, route) => {
  test("is closed to whoever is nobody", async () => {
    const strangers: Caller[] = [
      anybody,
      withKey("garbage"),
      withKey(`svc_live_${"x".repeat(57)}`),
      withKey(theirs.keys.whole.replace(/.$/, (last) => (last === "0" ? "1" : "0"))),
      withKey(theirs.keys.whole.replace("svc_live", "svc_test")),
      withKey(theirs.keys.revoked),
      withKey(theirs.keys.expired),
      withApplication({ "x-application-key": theirs.shop.keys.live.replace("live", "test") }),
      withApplication({ "x-application-secret": `${theirs.shop.secret}x` }),
      withToken(theirs.user.access_token.replace(/....$/, "AAAA")),
      withToken("a.b.c"),
      withToken(`${btoa('{"alg":"none"}')}.${btoa('{"sub":"x"}')}.`),
      await signedOut(service),
    ]
    const texts = new Set<string>()
    for (const who of share(strangers)) {
      const answer = await ask(route, who, theirs.ids)
      expectRefused(answer, 401, "unauthorized")
      texts.add(answer.body.error.message)
    }
    expect(texts.size).toBe(1)
  })

  test("is closed to a key from elsewhere, and to one without its scope", async () => {
    const elsewhere = await ask(route, withKey(theirs.keys.elsewhere), theirs.ids)
    expectRefused(elsewhere, 403, "ip_not_allowed")
    if (route.scope === "-") return // any key will do
    const key = lacking.get(route.scope) ?? theirs.keys.whole
    const answer = await ask(route, withKey(key), theirs.ids)
    expectRefused(answer, 403, "forbidden")
    const { required_scope, required_role } = answer.body.error.details
    if (forKeys(route)) expect(scopesOf(route)).toContain(required_scope)
    else expect(required_role).toBe(route.scope.split("|")[0]?.replace("role:", "") ?? "")
  })

  test("is closed to a subscriber, and to pages wherever they come from", async () => {
    if (isForSubscribersToo(route)) return
    const origin = { origin: "https://app.example.test" }
    for (const headers of [{}, origin]) {
      const answer = await ask(route, withToken(theirs.inbox_token), theirs.ids, headers)
      expectRefused(answer, 403, "forbidden")
      const shown = answer.headers.get("access-control-allow-origin")
      if (!isForBrowsers(route)) expect(shown).toBeNull()
    }
    const keyed = await ask(route, withKey(theirs.keys.revoked), theirs.ids, origin)
    expect(keyed.headers.get("access-control-allow-origin")).toBeNull()
  })

  test("tells a foreign id as little as one that nobody has", async () => {
    if (isOfOperator(route)) return // what it names belongs to no account
    const sibling = [withKey(theirs.keys.sibling), {}, "key"] as ReturnType<typeof insiders>[number]
    const callers = [...insiders(route, ours), ...(forKeys(route) ? [sibling] : [])]
    for (const [who, headers, kind] of callers) {
      for (const swapped of swaps(namesIn(route, kind))) {
        const foreign = exchanged(ours.ids, swapped, (name) => theirs.ids[name] ?? "")
        const absent = exchanged(ours.ids, swapped, () => NOBODY)
        const theirsAsked = await ask(route, who, foreign, headers)
        expectNoLeak(theirsAsked)
        expect(theirsAsked.status).toBe(404)
        const nobodys = await ask(route, who, absent, headers)
        expect(alike(theirsAsked, foreign)).toEqual(alike(nobodys, absent))
      }
    }
  })

  test("takes a text that is no id for an id that nobody has", async () => {
    const [[who, headers, kind] = [ours.owner, {}, "console" as const]] = insiders(route, ours)
    if (isOfOperator(route)) return
    for (const swapped of swaps(namesIn(route, kind))) {
      for (const text of share(NO_IDS)) {
        const none = exchanged(ours.ids, swapped, () => text)
        const { status } = await ask(route, who, none, headers)
        expect([text, [404, 422].includes(status)]).toEqual([text, true])
      }
    }
    const filters = Object.keys(route.query?.properties ?? {}).filter((name) =>
      name.endsWith("_id"),
    )
    for (const filter of filters) {
      for (const text of share(NO_IDS)) {
        const query = `${filter}=${encodeURIComponent(text)}`
        const answer = await ask(route, who, ours.ids, headers, query)
        expect([text, [200, 404, 422].includes(answer.status)]).toEqual([text, true])
      }
    }
  })

  test("answers a neighbour without a word about others", async () => {
    const { owner, account_id, project_id } = await team(service)
    const own = { ...theirs.ids, project_id }
    expectNoLeak(await ask(route, owner, own))
    expectNoLeak(await ask(route, owner, own, { "x-project-id": theirs.project_id }))
    const both = { "x-account-id": account_id, "x-project-id": theirs.project_id }
    expectNoLeak(await ask(route, owner, theirs.ids, both))
    const own_key = withKey(ours.keys.whole)
    const claims = { "x-project-id": theirs.project_id, "x-account-id": theirs.account_id }
    if (forKeys(route) && route.method === "GET") {
      expectNoLeak(await ask(route, own_key, ours.ids, claims))
    }
  })
})

const reads = guarded.filter((route) => route.method === "GET" && !isOfOperator(route))

test.each(named(reads))(
  "%s answers who may ask, so that its refusals mean something",
  async (_, route) => {
    for (const [who, headers] of insiders(route, ours)) {
      admits(route, await ask(route, who, ours.ids, headers))
    }
  },
)

describe.each(named(ofAccounts))("%s", (_, route) => {
  test("is closed to an account that is locked or suspended", async () => {
    for (const [of, code] of [
      [locked, "account_locked"],
      [suspended, "account_suspended"],
    ] as const) {
      if (forPeople(route)) expectRefused(await ask(route, of.owner, of.ids, here(of)), 403, code)
      expectRefused(await ask(route, withKey(of.keys.whole), of.ids), 403, code)
    }
  })

  test("is closed to the wrong role", async () => {
    const who = await wrongRole(route.scope)
    const answer = await ask(route, who, theirs.ids, { "x-account-id": theirs.account_id })
    expectNoLeak(answer)
    expect([403, 404]).toContain(answer.status)
  })

  test("asks of people in the project the role that the contract gives its scope", async () => {
    const { refused, admitted } = rolesFor(route)
    for (const role of refused) {
      const answer = await ask(route, theirs.colleagues[role], theirs.ids, here(theirs))
      expectRefused(answer, 403, "forbidden")
      const { required_scope, required_role } = answer.body.error.details
      const { console_scope = route.scope } = route
      const wanted = console_scope.split("|").map((one) => one.replace("role:", ""))
      expect(wanted).toContain(required_scope ?? required_role)
    }
    if (route.method !== "GET") return
    for (const role of admitted) {
      admits(route, await ask(route, theirs.colleagues[role], theirs.ids, here(theirs)))
    }
  })

  test("is closed to sessions of another account", async () => {
    if (!forPeople(route)) return
    const foreign = [
      await ask(route, ours.owner, theirs.ids, { "x-account-id": theirs.account_id }),
      await ask(route, ours.owner, theirs.ids, { "x-account-id": NOBODY }),
    ]
    for (const answer of foreign) expectRefused(answer, 404, "not_found")
    expect(foreign[0]?.body.error).toEqual(foreign[1]?.body.error)
  })
})

describe.each(named(guarded.filter(forSubscribers)))("%s", (_, route) => {
  test("is for subscribers alone, and not while their account is locked or suspended", async () => {
    for (const who of [theirs.owner, withKey(theirs.keys.whole)]) {
      const answer = await ask(route, who, theirs.ids, who === theirs.owner ? here(theirs) : {})
      expectRefused(answer, 403, "forbidden")
      expect(answer.body.error.details.required_role).toBe("subscriber")
    }
    for (const [of, code] of [
      [locked, "account_locked"],
      [suspended, "account_suspended"],
    ] as const) {
      expectRefused(await ask(route, withToken(of.inbox_token), of.ids), 403, code)
    }
  })
})

describe.each(named(guarded.filter(isOfOperator)))("%s", (_, route) => {
  test("is closed to owners, and answers who runs the instance", async () => {
    for (const who of [theirs.owner, ours.owner, await stranger(service)]) {
      const answer = await ask(route, who, theirs.ids)
      expectRefused(answer, 403, "forbidden")
      expect(answer.body.error.details.required_role).toBe("operator")
    }
    const operator = await person(service, undefined, true)
    expect([200, 201, 409]).toContain((await ask(route, operator, ours.ids)).status)
  })
})
const lists = guarded.filter(({ query }) => query?.properties.cursor)

test.each(named(lists.filter((route) => !isOfOperator(route))))(
  "%s refuses the cursor of another list, and of another project",
  async (_, route) => {
    for (const world of [ours, theirs]) {
      const keys = await world.owner.get("/v1/api-keys?per_page=1", here(world))
      const ids: Ids = { ...ours.ids, cursor: keys.body.meta.next_cursor }
      const url = pathOf(route, ids, `cursor=${ids.cursor}`)
      const [[who, headers] = [ours.owner, {}]] = insiders(route, ours)
      const answer = await who.call("GET", url, { headers })
      const is_own = world === ours && route.path === "/v1/api-keys"
      expect([url, answer.status]).toEqual([url, is_own ? 200 : 422])
      if (!is_own) expect(complaints(answer)).toEqual(["cursor"])
    }
  },
)

test.each(named(lists.filter((route) => !isOfOperator(route))))(
  "%s goes on neither after nor before a record of somebody else",
  async (_, route) => {
    clock.advance({ seconds: 60 }) // people may ask 600 times in one minute
    // An external id is a name that the caller gives, so its echo tells nothing.
    const { external_id: _name, ...foreign } = theirs.ids
    const [[who, headers] = [ours.owner, {}]] = insiders(route, ours)
    for (const side of ["after", "before"]) {
      const asked = (id: string) =>
        who.call("GET", pathOf(route, ours.ids, `${side}=${id}`), { headers })
      const nobodys = await asked(NOBODY)
      expect(nobodys.status).toBe(422)
      for (const id of share(Object.values(foreign))) {
        const answer = await asked(encodeURIComponent(id))
        expectNoLeak(answer)
        expect([side, id, alike(answer, { id })]).toEqual([
          side,
          id,
          alike(nobodys, { id: NOBODY }),
        ])
      }
    }
  },
)

/** A WebSocket is told only that it is one, and that only to who may have it. */
function admits({ socket }: AnyRoute, { status, body }: Awaited<ReturnType<typeof ask>>) {
  if (socket) expect(body.error.details.reason).toBe("upgrade_required")
  else expect(status).toBe(200)
}

/** Somebody of the same account who lacks just what the route asks for. */
async function wrongRole(scope: string): Promise<Caller> {
  const { admin, billing_admin, member } = theirs.people
  if (scope === "role:member") return billing_admin
  if (scope === "role:owner") return admin
  return scope.startsWith("role:member|") ? stranger(service) : member
}

describe("routes that anybody may ask", () => {
  const open = routes.filter(({ callers }) => callers.includes("none"))

  test.each(named(open))("%s", async (_, route) => {
    const callers = [
      anybody,
      withKey("garbage"),
      withKey(ours.keys.whole),
      withToken("a.b.c"),
      await stranger(service),
    ]
    for (const who of callers) {
      for (const token of ["no-such-token", "..%2f", theirs.ids.invitation_id ?? ""]) {
        const answer = await ask(route, who, { ...theirs.ids, token, name: token })
        expectNoLeak(answer)
        expect(answer.status).toBeLessThan(500)
        if (route.path.startsWith("/v1/") && route.path.includes("{token}")) {
          expect(answer.status).toBeGreaterThanOrEqual(400)
        }
      }
    }
  })
})

test("nothing of theirs was changed by anybody's try", async () => {
  expect(before).toContain(MARK)
  expect(await stateOf(theirs)).toBe(before)
})
