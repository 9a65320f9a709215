import { eq } from "drizzle-orm"
import { findForUpdate } from "../../src/auth/end-users"
import { organizationInvitations } from "../../src/auth/organizations/tables"
import { addIdentity } from "../../src/auth/social/identities"
import { applicationKeys, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { isoFrom, millis, now, secondsFromNow } from "../../src/core/time"
import * as apiKeys from "../../src/identity/api-keys"
import { SCOPES } from "../../src/identity/scopes"
import { accounts, consoleSessions } from "../../src/identity/tables"
import { inboundRoutes } from "../../src/inbound/tables"
import * as longJobs from "../../src/jobs/long-jobs"
import { keep } from "../../src/mailbox/mailbox"
import { deliveries } from "../../src/webhooks/tables"
import { plantPasskey } from "../auth/factors/planted-passkey"
import {
  newApplication,
  signedUp,
  type TestApplication,
  type TestUser,
} from "../harness/application"
import { client } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { type Person, person, type Team, team } from "../harness/people"
import type { TestService } from "../harness/service"
import * as inbound from "../inbound/received"
import { tokenOf } from "../inbox/subscriber-app"
import { addDevice, configurePush } from "../push/pushes"
import type { ProjectRole } from "./roles"
import { type Ids, WELCOME } from "./rows"

/** An account with one of everything, each marked with a text that nobody else may ever see. */
export interface World {
  mark: string
  account_id: string
  project_id: string
  owner: Person
  ids: Ids
  keys: {
    whole: string
    revoked: string
    expired: string
    elsewhere: string
    /** Of another project in the same account. */
    sibling: string
  }
  /** The token of a subscriber. */
  inbox_token: string
  /** An application with a user, who is the subscriber; another one of the same project, with nothing of the world. */
  shop: TestApplication
  user: TestUser
  other_shop: TestApplication
  /** People of the account by role; the member has no role in any project. */
  people: Record<"admin" | "billing_admin" | "member", Person>
  /** Members of the account by their role in the project. */
  colleagues: Record<ProjectRole, Person>
  /** A key with every scope but these. */
  keyWithout(scopes: string[]): Promise<string>
}

type Wanted = Partial<apiKeys.NewApiKey> & { revoked?: boolean }

export async function world(service: TestService, mark: string): Promise<World> {
  const home = await team(service)
  const { owner, account_id, project_id } = home
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  const key = (wanted: Wanted = {}) => makeKey(service, home, mark, wanted)
  const whole = await key()

  await owner.patch("/v1/accounts/me", { name: `${mark} account` }, here)
  await owner.patch(`/v1/projects/${project_id}`, { name: `${mark} project` }, here)
  await owner.patch("/v1/settings", { default_reply_to: `${mark}@example.test` }, here)
  const guest = await home.join("member")
  const role = { user_id: guest.id, role: "viewer" }
  await owner.post(`/v1/projects/${project_id}/members`, role, here)
  const invited = { email: `${mark}@guest.test`, role: "member" }
  const invitation = await owner.post("/v1/accounts/me/members/invite", invited, here)
  const emails = await sent(service, owner, mark, here)
  const mail_id = await received(service, home, mark)
  const incoming = await receivedMail(service, home, mark)
  const hooks = await told(service, owner, mark, here)
  const job = await service.store.tx((tx) =>
    longJobs.begin(tx, project_id, { type: `${mark}.job` }),
  )
  const domain = await owner.post("/v1/domains", { domain: `${mark}.test` }, here)
  const texts = { name: `${mark.toLowerCase()}-mail`, html: `<p>${mark}</p>`, tags: [mark] }
  const template = await owner.post("/v1/templates", texts, here)
  const sessions = await owner.get("/v1/users/me/sessions")
  const provider = {
    provider: "smtp",
    name: `${mark} relay`,
    credentials: {
      host: "127.0.0.1",
      port: 9,
      username: mark,
      password: `${mark} pw`,
      tls: "none",
    },
  }
  const config = await owner.post("/v1/providers/email_provider/config", provider, here)
  const suppressed = { email: `${mark}@gone.test` }
  const suppression = await owner.post("/v1/suppressions", suppressed, here)
  const topic = { name: `${mark} topic`, key: `topic-${project_id.slice(-12)}` }
  await owner.post("/v1/topics", topic, here)
  const person = { external_id: `${mark}/person`, email: `${mark}@person.test`, name: mark }
  const subscriber = await owner.post("/v1/subscribers", person, here)
  const subscriber_id = subscriber.body.data.id
  const second_person = { external_id: `${mark}/second` }
  const from = await owner.post("/v1/subscribers", second_person, here)
  const joined = { subscriber_ids: [subscriber_id] }
  await owner.post(`/v1/topics/${topic.key}/subscribers`, joined, here)
  const published = {
    channels: ["email"],
    content: { email: { subject: `${mark} news`, text: mark, from: "news@example.test" } },
  }
  const publish = await owner.post(`/v1/topics/${topic.key}/publish`, published, here)
  const category = await owner.post("/v1/subscribers/categories", { name: `${mark} news` }, here)
  const asProject = client(service.app, whole.key)
  const action_key = `accept-${project_id.slice(-12)}`
  const actions = [{ key: action_key, label: mark }]
  const note = { subscriber_id, title: `${mark} note`, actions }
  const inbox_id = (await owner.post("/v1/inbox", note, here)).body.data.id
  const phone = { user_id: person.external_id, platform: "android", token: mark }
  const device = await owner.post("/v1/devices", { device_id: mark, ...phone }, here)
  await owner.get("/v1/push/webpush/public-key", here) // makes the key pair
  const columns = { name: `${mark} shop`, redirect_urls: [WELCOME] }
  const shop = await newApplication(service, home, columns)
  const github = { environment: "live", client_id: mark, client_secret: mark, enabled: true }
  const providers = `/v1/auth/applications/${shop.id}/oauth-providers`
  await owner.call("PUT", `${providers}/github`, { body: github, headers: here })
  const user = await signedUp(service, shop, { name: mark, email: `${mark}@user.test` })
  await service.store.tx((tx) =>
    tx.update(users).set({ subscriber_id }).where(eq(users.id, user.id)),
  )
  const identity_id = await identityOf(service, shop, user.id, mark)
  const environment_id = shop.environment_ids.live
  const held = { project_id, environment_id, user_id: user.id, name: `${mark} key` }
  const passkey_id = await plantPasskey(service, held)
  const named = eq(applicationKeys.key, shop.keys.live)
  const [public_key] = await service.store.read.select().from(applicationKeys).where(named)
  const group = { name: `${mark} group`, application_id: shop.id }
  const organization = await owner.post("/v1/auth/organizations", group, here)
  const organization_id = organization.body.data.id
  const seat = { user_id: user.id, role: "owner" }
  await owner.post(`/v1/auth/organizations/${organization_id}/members`, seat, here)
  const guest_email = `${mark}@guest.test`.toLowerCase()
  const end_invitation = {
    ...{ id: newId(), project_id, environment_id, organization_id, role: "member" },
    ...{ email: guest_email, email_key: guest_email, created_at: now() },
    ...{ expires_at: secondsFromNow(86_400), accepted_at: null, revoked_at: null },
  }
  await service.store.tx((tx) => tx.insert(organizationInvitations).values(end_invitation))
  const second = await owner.post("/v1/projects", { name: "Sibling" }, here)
  const sibling = { account_id, project_id: second.body.data.id }

  return {
    mark,
    account_id,
    project_id,
    owner,
    ids: {
      project_id,
      user_id: guest.id,
      account_id,
      invitation_id: invitation.body.data.id,
      session_id: sessions.body.data[0].id,
      key_id: whole.id,
      domain_id: domain.body.data.id,
      ...emails,
      template_id: template.body.data.id,
      mail_id,
      ...incoming,
      suppression_id: suppression.body.data.id,
      topic_key: topic.key,
      publish_id: publish.body.data.id,
      subscriber_id,
      inbox_id,
      device_id: device.body.data.id,
      action_key,
      category_id: category.body.data.id,
      from_id: from.body.data.id,
      external_id: encodeURIComponent(person.external_id),
      ...hooks,
      job_id: job.id,
      queue: "email", // of the instance: the same for everybody
      token: "no-such-token",
      kind: "email_provider",
      config_id: config.body.data.id,
      provider: "ses",
      config_token: "no-such-token",
      application_id: shop.id,
      organization_id,
      end_user_id: user.id,
      end_session_id: user.session_id,
      end_key_id: public_key?.id ?? "",
      end_invitation_id: end_invitation.id,
      identity_id,
      passkey_id,
    },
    keys: {
      whole: whole.key,
      revoked: (await key({ revoked: true })).key,
      expired: (await key({ expires_at: isoFrom(millis() - 1000) })).key,
      elsewhere: (await key({ ip_addresses: ["192.0.2.254"] })).key,
      sibling: (await makeKey(service, sibling, "sibling", {})).key,
    },
    inbox_token: await tokenOf(asProject, subscriber_id),
    ...{ shop, user, other_shop: await newApplication(service, home, { name: "Other" }) },
    people: {
      admin: await home.join("admin"),
      billing_admin: await home.join("billing_admin"),
      member: await home.join("member"),
    },
    colleagues: {
      viewer: await colleague(home, "viewer"),
      developer: await colleague(home, "developer"),
      admin: await colleague(home, "admin"),
    },
    keyWithout: async (scopes) => {
      const others = SCOPES.filter((one) => one !== "*" && !scopes.includes(one))
      return (await key({ scopes: others })).key
    },
  }
}

/** An account elsewhere of a user. */
async function identityOf(
  { store }: TestService,
  shop: TestApplication,
  user_id: string,
  mark: string,
): Promise<string> {
  const environment = await shop.environment()
  const account = { provider: "google", provider_user_id: mark, email: `${mark}@elsewhere.test` }
  const user = await store.tx(async (tx) =>
    addIdentity(tx, environment, await findForUpdate(tx, shop.project_id, user_id), account),
  )
  return user?.identities[0]?.id ?? ""
}

async function colleague({ owner, join, project_id, account_id }: Team, role: ProjectRole) {
  const found = await join("member")
  const wanted = { user_id: found.id, role }
  const here = { "x-account-id": account_id }
  await owner.post(`/v1/projects/${project_id}/members`, wanted, here)
  return found
}

interface Home {
  account_id: string
  project_id: string
}

async function makeKey({ store }: TestService, home: Home, mark: string, wanted: Wanted) {
  const { account_id, project_id } = home
  const owner = { account_id, project_id, created_by: { type: "local" as const, id: null } }
  const { revoked, ...own } = wanted
  const whole = { name: `${mark} key`, scopes: ["*"], expires_at: null, ip_addresses: [], ...own }
  return store.tx(async (tx) => {
    const made = await apiKeys.create(tx, owner, whole)
    if (revoked) await apiKeys.revoke(tx, project_id, made.id)
    return made
  })
}

async function sent(service: TestService, owner: Person, mark: string, here: Ids): Promise<Ids> {
  const file = { filename: `${mark}.txt`, content: btoa(mark), content_type: "text/plain" }
  const fields = { subject: `${mark} subject`, text: `${mark} text`, attachments: [file] }
  const { id: email_id } = (await owner.post("/v1/emails", mail(fields), here)).body
  await deliverAll(service)
  const told = await owner.get(`/v1/emails/${email_id}`, here)
  const later = { ...fields, scheduled_at: secondsFromNow(3600), attachments: [] }
  const { id: scheduled_id } = (await owner.post("/v1/emails", mail(later), here)).body
  const text = { to: "+4366012345678", body: `${mark} text`, scheduled_at: secondsFromNow(3600) }
  await owner.post("/v1/providers/sms_provider/config", { provider: "log" }, here)
  const { id: sms_id } = (await owner.post("/v1/sms", text, here)).body.data
  const [account_id, project_id] = [here["x-account-id"] ?? "", here["x-project-id"] ?? ""]
  await configurePush(service.store, { account_id, project_id }, ["apns"])
  const { device_id } = await addDevice(service.store, project_id, { device_id: `${mark} phone` })
  const push = { device_id, title: `${mark} push`, scheduled_at: secondsFromNow(3600) }
  const { id: push_id } = (await owner.post("/v1/push", push, here)).body.data
  return {
    email_id,
    scheduled_id,
    sms_id,
    push_id,
    attachment_id: told.body.data.attachments[0].id,
  }
}

async function received({ store }: TestService, home: Home, mark: string): Promise<string> {
  const id = newId()
  const file = 'Content-Type: text/plain\r\nContent-Disposition: attachment; filename="a.txt"\r\n'
  const raw = Buffer.from(`Subject: ${mark} mail\r\nFrom: a@b.test\r\n${file}\r\n${mark}\r\n`)
  const address = `${mark}@mailbox.test`.toLowerCase()
  const row = {
    id,
    account_id: home.account_id,
    project_id: home.project_id,
    email_id: null,
    mail_from: "a@b.test",
    recipients: [address],
    to_address: address,
    from_address: "a@b.test",
    subject: `${mark} mail`,
    raw,
    size: raw.length,
    created_at: now(),
  }
  await store.tx((tx) => keep(tx, row))
  return id
}

/** A received mail with a file, and a route. */
async function receivedMail(service: TestService, home: Home, mark: string): Promise<Ids> {
  const { id: inbound_id } = await inbound.received(service, home, {
    subject: `${mark} mail`,
    bodies: { text_body: mark },
    files: [{ content: mark, filename: `${mark}.txt` }],
  })
  const route = { match_to: `${mark.toLowerCase()}@in.example.test`, action: "drop" } as const
  const at = { created_at: now(), updated_at: now() }
  const row = {
    id: newId(),
    project_id: home.project_id,
    target: null,
    priority: 1,
    ...route,
    ...at,
  }
  await service.store.tx((tx) => tx.insert(inboundRoutes).values(row))
  return { inbound_id, route_id: row.id }
}

/** An endpoint, an event, and the delivery of the one to the other, as it may look afterwards. */
async function told({ store }: TestService, owner: Person, mark: string, here: Ids): Promise<Ids> {
  const endpoint = {
    url: `http://127.0.0.1:65000/${mark}`,
    events: ["*"],
    description: `${mark} endpoint`,
    headers: { "X-Mark": mark },
    metadata: { mark },
  }
  const webhook_id = (await owner.post("/v1/webhooks", endpoint, here)).body.data.id
  const made = { type: "email.sent", data: { subject: `${mark} subject` } }
  const event_id = (await owner.post("/v1/events/trigger", made, here)).body.data.id
  const seen = { last_response_body: mark, request_headers: { "x-mark": mark } }
  const captured = { ...seen, response_headers: { "x-mark": mark }, url: endpoint.url }
  const ours = eq(deliveries.webhook_id, webhook_id)
  await store.tx((tx) => tx.update(deliveries).set(captured).where(ours))
  const list = await owner.get(`/v1/webhooks/${webhook_id}/deliveries`, here)
  return { webhook_id, event_id, delivery_id: list.body.data[0].id }
}

/** Somebody who belongs to nothing. */
export const stranger = (service: TestService) => person(service)

/** Somebody whose session is over. */
export async function signedOut(service: TestService): Promise<Person> {
  const { owner } = await team(service)
  const ended = { revoked_at: now() }
  await service.store.tx((tx) =>
    tx.update(consoleSessions).set(ended).where(eq(consoleSessions.user_id, owner.id)),
  )
  return owner
}

export const block = (
  { store }: TestService,
  { account_id }: World,
  status: "locked" | "suspended",
) => store.tx((tx) => tx.update(accounts).set({ status }).where(eq(accounts.id, account_id)))
