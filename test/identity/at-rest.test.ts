import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { recentLines } from "../../src/core/log"
import { jobs } from "../../src/jobs/tables"
import { mailboxMails } from "../../src/mailbox/tables"
import { messageContents, messageRaws, messages } from "../../src/messages/tables"
import { atRest } from "../harness/at-rest"
import { team } from "../harness/people"
import { type TestService, testService } from "../harness/service"
import { giveUp } from "../messages/by-hand"
import { BEHIND_PROXY, registered, stranger } from "./entrance"
import { order, systemMailTo, to_mailbox, workOff } from "./post"

const NEW_PASSWORD = "Reset-Horse-9"
const KIMS_PASSWORD = "Proper-Staple-8"

const service = () => testService({ ...BEHIND_PROXY, mail: to_mailbox })

/** Where a secret shows up, in whatever writing it might have been kept; mail breaks long lines. */
async function placesOf(it: TestService, secret: string): Promise<string[]> {
  const places = { storage: await atRest(it), log: recentLines().join("\n") }
  const forms = [secret, Buffer.from(secret).toString("hex"), encodeURIComponent(secret)]
  return Object.entries(places)
    .map(([place, text]) => [place, text + text.replaceAll("=\r\n", "")] as const)
    .filter(([, text]) => forms.some((form) => text.includes(form)))
    .map(([place]) => place)
}

test("a reset and an invitation leave nothing on disk or in the log that opens an account", async () => {
  await using it = await service()
  const { owner, project_id } = await team(it)
  const { email } = await registered(it)
  const door = stranger(it)

  await door.post("/v1/password/forgot", { email })
  await owner.post("/v1/accounts/me/members/invite", { email: "kim@people.test", role: "member" })
  await workOff(it, project_id)

  const [reset = ""] = /belfry_reset_[\w-]{43}/.exec(await systemMailTo(it, email)) ?? []
  const invitation = /belfry_invitation_[\w-]{43}/.exec(await systemMailTo(it, "kim@people.test"))
  const [invited = ""] = invitation ?? []
  expect([reset, invited]).not.toContain("")
  for (const token of [reset, invited]) expect(await placesOf(it, token)).toEqual([])

  await door.get(`/password-reset/${reset}`)
  await door.get(`/invitation/${invited}`)
  const changed = await door.post("/v1/password/reset", {
    token: reset,
    new_password: NEW_PASSWORD,
  })
  const path = `/v1/invitations/${invited}/accept`
  const joined = await door.post(path, { name: "Kim", password: KIMS_PASSWORD })
  expect([changed.status, joined.status]).toEqual([200, 200])
  const { refresh_token } = joined.body.data
  const renewed = await door.post("/v1/session/refresh", { refresh_token })
  const tokens = [joined, renewed].flatMap(({ body }) => [
    body.data.access_token,
    body.data.refresh_token,
  ])
  for (const secret of [reset, invited, NEW_PASSWORD, KIMS_PASSWORD, ...tokens]) {
    expect([secret, await placesOf(it, secret)]).toEqual([secret, []])
  }
})

test("while it waits it is sealed, and once it is delivered nothing is left of it", async () => {
  await using it = await service()
  const { store } = it
  const { email } = await registered(it)
  const letter = { to: email, subject: "Hi", text: "canary 4711", kind: "test" }
  await store.tx((tx) => it.parts.mail.send(tx, letter))

  const [waiting] = await store.read.select().from(messageContents)
  expect(waiting?.content).toEqual({ sealed: expect.stringMatching(/^v1\./) })
  expect(await placesOf(it, "canary 4711")).toEqual([])

  await workOff(it)
  expect(await store.read.select().from(messageContents)).toEqual([])
  expect(await store.read.select().from(messageRaws)).toEqual([])
  expect(await placesOf(it, "canary 4711")).toEqual([])
  expect(await systemMailTo(it, email)).toContain("canary 4711")
})

test("a mail of the instance that is never delivered is forgotten, too", async () => {
  await using it = await service()
  const { store, parts } = it
  const letter = { to: "ann@people.test", subject: "Hi", text: "hello", kind: "test" }
  await store.tx((tx) => parts.mail.send(tx, letter))
  const [message] = await store.read.select().from(messages)
  await giveUp(store, message?.id ?? "", "nobody answers")
  const [after] = await store.read.select().from(messages)
  expect(after?.status).toBe("failed")
  expect(await store.read.select().from(messageContents)).toEqual([])
})

test("what a project sends stays readable to it", async () => {
  await using it = await service()
  const { post, get, project_id } = await it.project()
  const sent = { from: "a@example.test", to: "b@example.test", subject: "Hi", text: "plain" }
  const { body } = await post("/v1/emails", sent)
  await workOff(it)
  const [mail] = await it.store.read
    .select()
    .from(mailboxMails)
    .where(eq(mailboxMails.project_id, project_id))
  expect(mail?.raw.toString()).toContain("plain")
  expect((await get(`/v1/emails/${body.id}/content`)).body.data.text).toBe("plain")
  expect(await it.store.read.select().from(jobs)).toEqual([])
})

test("the operator finds it by recipient, sender, words and time", async () => {
  await using it = await service()
  for (const name of ["ann", "kim"]) {
    const letter = { to: `${name}@people.test`, subject: `For ${name}`, text: "x", kind: "test" }
    await it.store.tx((tx) => it.parts.mail.send(tx, letter))
  }
  await workOff(it)
  const found = async (filter: object) => {
    const list = { operation: "system_mails", limit: 10, ...filter } as const
    return (await order<{ to: string }[]>(it, list)).map(({ to }) => to).sort()
  }
  const [ann, kim] = ["ann@people.test", "kim@people.test"]
  expect(await found({})).toEqual([ann, kim])
  expect(await found({ to: kim })).toEqual([kim])
  expect(await found({ from: "belfry@mailbox.test" })).toEqual([ann, kim])
  expect(await found({ from: "other@mailbox.test" })).toEqual([])
  expect(await found({ search: "FOR ANN" })).toEqual([ann])
  expect(await found({ since: "2020-01-01T00:00:00.000Z" })).toEqual([ann, kim])
  expect(await found({ since: "2999-01-01T00:00:00.000Z" })).toEqual([])
})
