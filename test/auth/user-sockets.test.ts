import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { endSessions } from "../../src/auth/end-sessions"
import { users } from "../../src/auth/tables"
import { newApplication, signedUp } from "../harness/application"
import { sharedService } from "../harness/shared-service"
import { knock, PROTOCOL, typed } from "../inbox/inbox-dial"
import { addSubscriber } from "../inbox/subscriber-app"

const service = await sharedService({
  socket_times: { look_ms: 50, ping_ms: 60_000, silence_ms: 60_000, stuck_ms: 60_000 },
})
const { store, parts } = service
const { url } = service.listen()
const OURS = "https://app.example.test"

/** A user of an application with listed pages, which the project itself does not list. */
async function linked() {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: { allowed_origins: ["https://other.test"] } })
  const shop = await newApplication(service, project, { allowed_origins: [OURS] })
  const ann = await signedUp(service, shop)
  const subscriber_id = await addSubscriber(service, project)
  await store.tx((tx) => tx.update(users).set({ subscriber_id }).where(eq(users.id, ann.id)))
  return { project, shop, ann, subscriber_id }
}

const withToken = (token: string, origin = OURS) =>
  knock(url, "", { protocols: [PROTOCOL, `bearer.${token}`], headers: { origin } })

test("an end user opens the inbox of the subscriber that they are, by a token or a ticket", async () => {
  const { project, ann, subscriber_id } = await linked()
  const made = await ann.post("/v1/subscriber-inbox/ticket", undefined, { origin: OURS })
  const { ticket } = made.body.data
  const ways = [
    () => withToken(ann.access_token),
    () => knock(url, `?ticket=${ticket}`, { headers: { origin: OURS } }),
  ]
  for (const way of ways) {
    using socket = await way()
    expect(await typed(socket, "ready")).toMatchObject({ subscriber_id })
    await parts.inbox_hub.look() // it knows the pages of the project alone
    await project.post("/v1/inbox", { subscriber_id, title: "Hello" })
    await typed(socket, "message.created")
  }
})

test("a page that the application does not list, and a user who is no subscriber, get no socket", async () => {
  const { shop, ann } = await linked()
  const nobody = await signedUp(service, shop)
  const evil = await withToken(ann.access_token, "https://evil.test")
  expect((await evil.closed).code).toBe(4403)
  expect((await (await withToken(nobody.access_token)).closed).code).toBe(4403)
  expect((await (await withToken(`${ann.access_token}x`)).closed).code).toBe(4401)
})

test("the socket of an end user ends with their session, however it was opened", async () => {
  const { shop, ann, project } = await linked()
  const made = await ann.post("/v1/subscriber-inbox/ticket", undefined, { origin: OURS })
  const by_ticket = await knock(url, `?ticket=${made.body.data.ticket}`, {
    headers: { origin: OURS },
  })
  const by_token = await withToken(ann.access_token)
  for (const socket of [by_ticket, by_token]) await typed(socket, "ready")
  const user = { ...ann, project_id: project.project_id }
  const environment = await shop.environment()
  await store.tx((tx) => endSessions(tx, environment, user, { reason: "test" }))
  for (const socket of [by_ticket, by_token]) expect((await socket.closed).code).toBe(4401)
  expect((await (await withToken(ann.access_token)).closed).code).toBe(4401)
})

test("a session that lacks its second factor opens no socket, and keeps none", async () => {
  const { shop, ann } = await linked()
  const open = await withToken(ann.access_token)
  await typed(open, "ready")
  const path = `/v1/auth/applications/${shop.id}/environments/live`
  await shop.server().patch(path, { mfa: { policy: "required" } })
  expect((await open.closed).code).toBe(4403)
  expect((await (await withToken(ann.access_token)).closed).code).toBe(4403)
})
