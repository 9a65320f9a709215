import { beforeAll, describe, expect, test } from "bun:test"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { type AppParts, routeTable } from "../../src/app"
import { organizationInvitations, organizations } from "../../src/auth/organizations/tables"
import { users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { consoleUsers } from "../../src/identity/tables"
import { keep } from "../../src/mailbox/mailbox"
import { attempts } from "../../src/messages/tables"
import { archiveName } from "../../src/operations/backup/backup-folder"
import { seat } from "../../src/tenancy/accounts"
import { plantPasskey } from "../auth/factors/planted-passkey"
import { freshName } from "../domains/acme"
import { complaints, type Reply, refusal } from "../harness/client"
import { addInbound } from "../harness/inbound-rows"
import { mail, NOBODY } from "../harness/mail"
import { type Person, person, type Team, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { bearer } from "../inbox/subscriber-app"
import { addDevice, configurePush } from "../push/pushes"
import { addText } from "../sms/texts"
import { hook } from "../webhooks/endpoints"

const service = await sharedService()
const { store, parts } = service
const MANY = 5

/** What a list is asked with, so that nothing else comes into it meanwhile. */
const ONLY: Record<string, string> = { "/v1/request-log": "&status=201&path=/v1/emails" }

/** Lists of a signed-in user. */
const OF_USERS = ["/v1/auth/sessions", "/v1/auth/passkeys"]

/** What names a record of a list, where it is no id. */
const NAMES: Record<string, string> = {
  "/v1/accounts/me/members": "user_id",
  "/v1/projects/{project_id}/members": "user_id",
  "/v1/emails/{email_id}/attempts": "attempt",
  "/v1/request-log": "request_id",
  "/v1/templates/{template_id}/versions": "version",
  "/v1/topics/{topic_key}/subscribers": "subscriber_id",
  "/v1/subscribers/{subscriber_id}/topics": "key",
  "/v1/admin/queues": "queue",
}

const lists = routeTable({} as AppParts).filter(
  ({ method, query }) => method === "GET" && query?.properties.page,
)

let home: Team
let operator: Person
let traveller: Person
let inbox_token: string
let user_token: string
const ids: Record<string, string> = {}

/** A person that may ask for the list. */
const askerOf = (path: string) => {
  if (path === "/v1/accounts") return traveller
  return path.startsWith("/v1/admin/") ? operator : home.owner
}

function ask(path: string, query: string): Promise<Reply> {
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "")
  const own =
    (path.startsWith("/v1/subscriber-inbox") && bearer(inbox_token)) ||
    (OF_USERS.includes(path) && bearer(user_token))
  if (own) return service.anybody.get(`${place}?${query}`, own)
  const here = askerOf(path) === home.owner ? { "x-project-id": home.project_id } : {}
  const of_application = ["/v1/auth/users", "/v1/auth/organizations"].includes(path)
  const only = of_application ? `&application_id=${ids.application_id}` : ONLY[path]
  return askerOf(path).get(`${place}?${query}${only ?? ""}`, here)
}

beforeAll(async () => {
  home = await team(service)
  operator = await person(service, undefined, true)
  traveller = await person(service)
  ids.project_id = home.project_id
  await configurePush(store, home, ["apns"])
  await addDevice(store, home.project_id, { device_id: "phone" })
  for (let at = 0; at < MANY; at++) await more(home.owner, at)
  for (let at = 0; at < MANY; at++) await addText(store, home, { to: `+43660123456${at}` })
  const wanted = { subscriber_id: ids.subscriber_id }
  const here = { "x-project-id": home.project_id }
  const made = await home.owner.post("/v1/subscriber-inbox/token", wanted, here)
  inbox_token = made.body.data.token
  const attempt = (number: number) => ({
    message_id: ids.email_id ?? "",
    attempt: number,
    provider: "mailbox",
    started_at: now(),
    duration_ms: 1,
    outcome: "retry",
    transcript: [],
  })
  await inviteSome()
  await store.tx((tx) => tx.insert(attempts).values([1, 2, 3, 9, 10].map(attempt)))
  for (const name of ["a.test", "b.test", "c.test", "d.test"]) {
    await operator.post(`/v1/admin/queues/email:${name}/pause`)
  }
  await parts.requests.flush()
})

/** To an organization, past their mails. */
async function inviteSome() {
  const its = eq(organizations.id, ids.organization_id ?? "")
  const [organization] = await store.read.select().from(organizations).where(its)
  if (!organization) throw new Error("there is no organization to invite to")
  const { id: organization_id, project_id, environment_id } = organization
  const about = { organization_id, project_id, environment_id, role: "member" }
  const rows = Array.from({ length: MANY }, (_, at) => {
    const email = `${at}@users.test`
    const ends = { expires_at: now(), accepted_at: null, revoked_at: null, created_at: now() }
    return { ...about, ...ends, id: newId(), email, email_key: email }
  })
  await store.tx((tx) => tx.insert(organizationInvitations).values(rows))
}

/** One more of everything that is listed. */
async function more(owner: Person, at: number) {
  const { account_id, project_id } = home
  const here = { "x-project-id": project_id }
  const post = (path: string, body: object) => owner.post(path, body, here)
  ids.email_id = (await post("/v1/emails", mail({ subject: `${at}` }))).body.id
  ids.webhook_id ??= (await post("/v1/webhooks", hook())).body.data.id
  await post("/v1/webhooks", hook())
  await post("/v1/events/trigger", { type: "email.sent" })
  await post("/v1/domains", { domain: freshName() })
  await post("/v1/api-keys", { name: `${at}`, scopes: ["email:send"] })
  const credentials = { host: "127.0.0.1", port: 9, username: "u", password: "p", tls: "none" }
  const relay = { provider: "smtp", name: `${at}`, credentials }
  await post("/v1/providers/email_provider/config", relay)
  await home.join("admin")
  const invited = { email: `${newId()}@people.test`, role: "member" }
  await post("/v1/accounts/me/members/invite", invited)
  await post("/v1/projects", { name: `${at}` })
  const application = await post("/v1/auth/applications", { name: `${at}` })
  ids.application_id ??= application.body.data.id
  const added = { application_id: ids.application_id, email: `${at}@users.test` }
  const user = await post("/v1/auth/users", added)
  ids.user_id ??= user.body.data.id
  const group = { application_id: ids.application_id, name: `Group ${at}` }
  const organization = await post("/v1/auth/organizations", group)
  ids.organization_id ??= organization.body.data.id
  const member = { user_id: user.body.data.id }
  await post(`/v1/auth/organizations/${ids.organization_id}/members`, member)
  const acting = await post(`/v1/auth/users/${ids.user_id}/impersonate`, { reason: "a test" })
  user_token = acting.body.data.access_token
  const [live] = await store.read
    .select()
    .from(users)
    .where(eq(users.id, ids.user_id ?? ""))
  if (live) {
    const { environment_id, id: user_id } = live
    await plantPasskey(service, { project_id, environment_id, user_id, name: `${at}` })
  }
  const match = { to: `${at}@in.example.test` }
  await post("/v1/inbound-routes", { match, action: "drop" })
  const texts = { name: `note-${at}`, text: "{{a}}" }
  const template = await post("/v1/templates", texts)
  ids.template_id ??= template.body.data.id
  const written = { name: "note-0", text: `${at} {{b}}` }
  await owner.call("PUT", `/v1/templates/${ids.template_id}`, { body: written, headers: here })
  await post("/v1/emails", mail({ scheduled_at: secondsFromNow(3600 + at) }))
  await post("/v1/push", { device_id: "phone", title: `${at}` })
  await post("/v1/suppressions", { email: `${at}@example.test` })
  const topic = await post("/v1/topics", { name: `Topic ${at}` })
  ids.topic_key ??= topic.body.data.key
  const subscriber = await post("/v1/subscribers", { external_id: `s${at}` })
  const subscriber_ids = [subscriber.body.data.id]
  ids.subscriber_id ??= subscriber.body.data.id
  await post(`/v1/topics/${ids.topic_key}/subscribers`, { subscriber_ids })
  await post("/v1/subscribers/categories", { name: `Category ${at}`, slug: `category-${at}` })
  const choice = { channel: "email", category: `category-${at}` }
  await post(`/v1/subscribers/${ids.subscriber_id}/unsubscribe`, choice)
  const agreed = { ...choice, action: "granted", source: "api" }
  await post(`/v1/subscribers/${ids.subscriber_id}/consents`, agreed)
  await post("/v1/devices", { user_id: "ann", platform: "android", token: `token-${at}` })
  await post("/v1/inbox", { subscriber_id: ids.subscriber_id, title: `Note ${at}` })
  const followed = { subscriber_ids: [ids.subscriber_id] }
  await post(`/v1/topics/${topic.body.data.key}/subscribers`, followed)
  const news = { email: { subject: "News", text: "Hello", from: "news@example.test" } }
  await post(`/v1/topics/${ids.topic_key}/publish`, { channels: ["email"], content: news })
  await addInbound(store, { account_id, project_id })
  const archive = join(service.folder, "backups", archiveName(newId(), now()))
  await Bun.write(archive, "") // one that cannot be read is in the list, too
  const other = await team(service)
  await store.tx(async (tx) => {
    await keep(tx, received(account_id, project_id))
    await seat(tx, other.account_id, traveller.id, "member")
    const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.id, owner.id))
    const origin = { ip: "127.0.0.1", user_agent: null, client_name: null }
    if (user) await parts.sessions.start(tx, user, origin)
  })
}

const received = (account_id: string, project_id: string) => ({
  id: newId(),
  account_id,
  project_id,
  email_id: null,
  mail_from: "a@b.test",
  recipients: ["a@mailbox.test"],
  to_address: "a@mailbox.test",
  from_address: "a@b.test",
  subject: "Ding",
  raw: Buffer.from("Subject: Ding\r\n\r\nDong\r\n"),
  size: 24,
  created_at: now(),
})

test("every paged list of the interface is asked here", () => {
  expect(lists.length).toBeGreaterThanOrEqual(18)
})

describe.each(lists.map(({ path }) => path))("%s", (path) => {
  const namesIn = ({ body }: Reply): string[] =>
    body.data.map((row: Record<string, unknown>) => String(row[NAMES[path] ?? "id"]))

  test("begins after a record, or ends before one", async () => {
    const whole = await ask(path, "limit=100")
    const names = namesIn(whole)
    expect(names.length).toBeGreaterThanOrEqual(MANY)
    expect([whole.body.has_more, whole.body.meta.has_more]).toEqual([false, false])
    expect(whole.body.meta).toMatchObject({ per_page: 100, total: names.length, page: 1 })
    const unnumbered = { per_page: 2, page: null, total: null, total_pages: null }
    for (const [at, name] of names.entries()) {
      const after = await ask(path, `limit=2&after=${name}`)
      expect(namesIn(after)).toEqual(names.slice(at + 1, at + 3))
      const has_more = names.length > at + 3
      expect(after.body).toMatchObject({ has_more, meta: { ...unnumbered, has_more } })

      const before = await ask(path, `limit=2&before=${name}`)
      expect(namesIn(before)).toEqual(names.slice(Math.max(0, at - 2), at))
      expect(before.body).toMatchObject({ has_more: at > 2, meta: { has_more: at > 2 } })
    }
  })

  test("goes on in its direction by its cursor and its link", async () => {
    const names = namesIn(await ask(path, "limit=100"))
    const [first = "", last = ""] = [names[0], names.at(-1)]
    const forth = await walked(`limit=1&after=${first}`)
    expect([first, ...forth]).toEqual(names)
    const back = await walked(`limit=1&before=${last}`)
    expect([...back.reverse(), last]).toEqual(names)
  })

  /** The names of every page, from the first one to the last. */
  async function walked(query: string): Promise<string[]> {
    const seen: string[] = []
    for (let next = query; ; ) {
      const page = await ask(path, next)
      seen.push(...namesIn(page))
      const { next_cursor } = page.body.meta
      expect([page.body.has_more, page.headers.has("link")]).toEqual(
        next_cursor ? [true, true] : [false, false],
      )
      if (!next_cursor) return seen
      const link = /\?(.*)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1]
      const words = new URLSearchParams(link)
      expect([words.get("cursor"), words.has("after"), words.has("before")]).toEqual([
        next_cursor,
        false,
        false,
      ])
      next = `limit=1&cursor=${next_cursor}`
    }
  }

  test("has no place beside a record that is not there", async () => {
    for (const name of ["after", "before"]) {
      for (const id of [NOBODY, "nothing", "", "-1", "%00"]) {
        const refused = await ask(path, `${name}=${id}`)
        expect(refusal(refused)).toEqual([422, "validation_error"])
        expect(complaints(refused)).toEqual([name])
      }
    }
  })

  test("begins in one place, and takes one size", async () => {
    const [name = ""] = namesIn(await ask(path, "limit=1"))
    for (const [query, wrong] of [
      [`after=${name}&before=${name}`, "before"],
      [`after=${name}&page=1`, "page"],
      [`before=${name}&cursor=x`, "cursor"],
      ["limit=2&per_page=3", "limit"],
      ["limit=0", "per_page"],
      ["limit=101", "per_page"],
    ]) {
      const refused = await ask(path, query ?? "")
      expect([refused.status, ...complaints(refused)]).toEqual([422, wrong ?? ""])
    }
    expect((await ask(path, "limit=2&per_page=2")).body.meta.per_page).toBe(2)
  })
})
