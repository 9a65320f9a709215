import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { routeTable } from "../../src/app"
import { systemMail } from "../../src/emails/instance-mail"
import { events } from "../../src/events/tables"
import * as mails from "../../src/mailbox/mailbox"
import { mailboxMails } from "../../src/mailbox/tables"
import { messages } from "../../src/messages/tables"
import { findInstance } from "../../src/tenancy/projects"
import { client, type Reply } from "../harness/client"
import { signedIn, team } from "../harness/people"
import { testService } from "../harness/service"
import { BEHIND_PROXY, registered, stranger } from "./entrance"
import { systemMailTo, to_mailbox, workOff } from "./post"

test("a reset token reaches the mailbox, and no key and no member ever sees it", async () => {
  await using service = await testService({ ...BEHIND_PROXY, mail: to_mailbox })
  const { store, app, parts } = service
  const { owner, account_id, project_id } = await team(service)
  const project = await service.project()
  const { email } = await registered(service, { operator: true })
  const door = stranger(service)
  await door.post("/v1/password/forgot", { email })
  await workOff(service, project_id)

  const instance = await findInstance(store.read)
  const [message] = await store.read.select().from(messages).where(eq(messages.address, email))
  expect(message).toMatchObject({ project_id: instance?.project_id, tags: ["password_reset"] })
  expect(message?.envelope?.from).toEqual({ email: "belfry@mailbox.test", name: "Belfry" })
  const [mail] = await store.read.select().from(mailboxMails)
  const token = /belfry_reset_[\w-]{43}/.exec(await systemMailTo(service, email))
  const secret = token?.[0] ?? "none"
  expect(secret).not.toBe("none")

  const read = await mails.list(store.read, instance?.project_id ?? "", {})
  expect(read.rows.map(({ to }) => to)).toEqual([email]) // as the operator's local command does

  const [event] = await store.read
    .select()
    .from(events)
    .where(eq(events.project_id, instance?.project_id ?? ""))
  const ids = [message?.id, mail?.id, event?.id, instance?.project_id, instance?.account_id]
  const strange = { "x-project-id": instance?.project_id ?? "" }
  const callers = [
    client(app, project.key).get,
    (path: string) => owner.get(path),
    (path: string) => owner.get(path, { "x-account-id": account_id, ...strange }),
    (path: string) => owner.get(path, { "x-account-id": instance?.account_id ?? "" }),
    (path: string) => door.get(path),
  ]
  const answers: Reply[] = []
  for (const { method, path } of routeTable(parts)) {
    if (method !== "GET" || path.startsWith("/password-reset")) continue
    for (const id of ids) {
      const filled = path.replaceAll(/\{\w+\}/g, id ?? "")
      for (const ask of callers) answers.push(await ask(filled))
      if (filled === path) break
    }
  }
  expect(answers.length).toBeGreaterThan(100)
  for (const { text, status } of answers) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain("Reset your Belfry password")
    if (status === 200) for (const id of ids) expect(text).not.toContain(id ?? "")
  }
  const reset = { token: secret, new_password: "Reset-Horse-9" }
  expect((await door.post("/v1/password/reset", reset)).status).toBe(200)
})

test("it is sent with what it tells, or not at all", async () => {
  await using service = await testService()
  const { store, parts } = service
  const post = to_mailbox(parts.secrets)
  const letter = { to: "ann@people.test", subject: "Hi", text: "hello", kind: "test" }
  const failing = store.tx(async (tx) => {
    await post.send(tx, letter)
    throw new Error("changed my mind")
  })
  expect(failing).rejects.toThrow("changed my mind")
  await failing.catch(() => {})
  expect(await store.read.select().from(messages)).toEqual([])
  await Promise.all([1, 2, 3].map(() => store.tx((tx) => post.send(tx, letter))))
  const sent = await store.read.select().from(messages)
  expect(new Set(sent.map(({ project_id }) => project_id)).size).toBe(1)
  expect(sent).toHaveLength(3)
})

test("its sender is the setting, and without one there is none beyond the mailbox", async () => {
  await using service = await testService()
  const { store, parts } = service
  const letter = { to: "ann@people.test", subject: "Hi", text: "hello", kind: "test" }
  const own = systemMail(parts.secrets, { system_from: "Post <post@acme.test>", to_mailbox: false })
  await store.tx((tx) => own.send(tx, letter))
  const [sent] = await store.read.select().from(messages)
  expect(sent).toMatchObject({ sender: "post@acme.test", sender_domain: "acme.test" })
  const none = systemMail(parts.secrets, { system_from: null, to_mailbox: false })
  const refused = store.tx((tx) => none.send(tx, letter))
  expect(refused).rejects.toMatchObject({ code: "email_not_configured", status: 503 })
  await refused.catch(() => {})
})

test("a person who runs the instance does not see it by the API either", async () => {
  await using service = await testService({ ...BEHIND_PROXY, mail: to_mailbox })
  const { store, app, parts } = service
  const user = await registered(service, { operator: true })
  await store.tx((tx) =>
    parts.mail.send(tx, { to: user.email, subject: "x", text: "y", kind: "z" }),
  )
  const session = await store.tx((tx) =>
    parts.sessions.start(tx, user, { ip: null, user_agent: null, client_name: null }),
  )
  const me = signedIn(app, session.access_token)
  const instance = await findInstance(store.read)
  const headers = {
    "x-account-id": instance?.account_id ?? "",
    "x-project-id": instance?.project_id ?? "",
  }
  for (const path of ["/v1/emails", "/v1/mailbox", "/v1/events", "/v1/accounts/me"]) {
    expect((await me.get(path, headers)).status).toBe(404)
  }
})
