import { describe, expect, test } from "bun:test"
import { eq, getTableColumns, getTableName } from "drizzle-orm"
import { newEventId, newId } from "../../src/core/ids"
import { secondsFromNow } from "../../src/core/time"
import * as apiKeys from "../../src/identity/api-keys"
import { projects } from "../../src/identity/tables"
import { OVER } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { purgeAccountNow, purgeProjectNow } from "../../src/operations/purge"
import { keepReceipts } from "../../src/providers/callbacks"
import type { Reader } from "../../src/store/store"
import { count } from "../../src/webhooks/endpoint-counts"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { addInbound } from "../harness/inbound-rows"
import { type Team, team } from "../harness/people"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { testSubmission } from "../harness/submission"
import { sampleRow, schemaTables } from "../harness/table-rows"
import { putMail } from "../mailbox/received"

const service = await sharedService()
const { store, anybody, parts } = service
const clock = movableClock()
const WEEK = 7 * 86_400

/** Every table that names a project or an account: a new one is found here by itself. */
const tables = await tablesWith("project_id", "account_id")

async function tablesWith(...names: string[]) {
  const all = await schemaTables()
  return all.filter((table) => names.some((name) => name in getTableColumns(table)))
}

/** How many rows of each table name the id, in whichever column. */
async function rowsNaming(db: Reader, column: string, id: string) {
  const counts: Record<string, number> = {}
  for (const table of tables) {
    const named = getTableColumns(table)[column]
    const rows = named ? await db.select().from(table).where(eq(named, id)) : []
    if (rows.length > 0) counts[getTableName(table)] = rows.length
  }
  return counts
}

/** A project with a key and a mail, so that many tables hold something of it. */
async function lived({ owner: person, account_id, project_id }: Team) {
  const owner = { account_id, project_id, created_by: { type: "local" as const, id: null } }
  const wanted = { name: "k", scopes: ["*"], ip_addresses: [], expires_at: null }
  const { key } = await store.tx((tx) => apiKeys.create(tx, owner, wanted))
  const mail = {
    from: "a@mailbox.test",
    to: "b@mailbox.test",
    subject: "s",
    text: "t",
    tags: ["one", "two"],
    category: "news",
  }
  const headers = { "x-api-key": key, "idempotency-key": "k" }
  const sent = await anybody.post("/v1/emails", mail, headers)
  expect(sent.status).toBe(201)
  await delivering({ account_id, project_id }, person, sent.body.id)
  await addInbound(store, { account_id, project_id })
  const scope = { type: "category" as const, key: "news" }
  const token = parts.rules.unsubscribe.tokenFor({ project_id, address: mail.to, scope })
  const form = { "content-type": "application/x-www-form-urlencoded" }
  const body = "List-Unsubscribe=One-Click"
  const ended = await anybody.call("POST", `/u/${token}`, { body, headers: form })
  expect(ended.status).toBe(200)
  await service.parts.requests.flush()
}

/** A provider of its own, which took the mail under an id of its own. */
async function delivering(
  { account_id, project_id }: Pick<Team, "account_id" | "project_id">,
  person: Team["owner"],
  message_id: string,
) {
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  const path = "/v1/providers/email_provider/config"
  const made = await person.post(path, { provider: "direct" }, here)
  const receipt = { message_id, project_id, config_id: made.body.data.id }
  await store.tx((tx) => keepReceipts(tx, [{ ...receipt, provider_message_id: "ses-1" }]))
}

describe("a deleted project", () => {
  test("goes after a week with every row that names it, and no other does", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    await lived(ours)
    await lived(theirs)
    await ours.owner.post("/v1/projects", { name: "Other" })
    const path = `/v1/projects/${ours.project_id}`
    expect((await ours.owner.remove(path, { confirm: "Default" })).status).toBe(200)
    const before = await rowsNaming(store.read, "project_id", theirs.project_id)
    expect(Object.keys(before).length).toBeGreaterThan(4)

    await purgeProjectNow(parts, ours.project_id)
    expect((await ours.owner.get(path)).status).toBe(200)
    clock.advance({ seconds: WEEK })
    await purgeProjectNow(parts, ours.project_id)
    const left = await rowsNaming(store.read, "project_id", ours.project_id)
    expect(Object.keys(left).sort()).toEqual(["audit_log", "usage_days"])
    expect(await rowsNaming(store.read, "project_id", theirs.project_id)).toEqual(before)
  })

  test("takes the deliveries along whose events and endpoint went before", async () => {
    const { account_id, project_id } = await service.project()
    const one = { account_id, project_id, webhook_id: newId(), event_id: newEventId() }
    await store.tx(async (tx) => {
      await tx.insert(deliveries).values(sampleRow(deliveries, { ...one, state: OVER }) as never)
      await count(tx, [one], { deliveries: 1 })
      const set = { status: "deleting" as const, deleting_at: secondsFromNow(0) }
      await tx.update(projects).set(set).where(eq(projects.id, project_id))
    })
    clock.advance({ seconds: 1 })
    await purgeProjectNow(parts, project_id)
    expect(await rowsNaming(store.read, "project_id", project_id)).toEqual({ audit_log: 1 })
  })

  test("stays when it was restored in time", async () => {
    const { owner, project_id } = await team(service)
    await owner.post("/v1/projects", { name: "Other" })
    await owner.remove(`/v1/projects/${project_id}`, { confirm: "Default" })
    await owner.post(`/v1/projects/${project_id}/restore`)
    clock.advance({ seconds: 2 * WEEK })
    await purgeProjectNow(parts, project_id)
    clock.advance({ seconds: -2 * WEEK })
    expect((await owner.get(`/v1/projects/${project_id}`)).status).toBe(200)
  })
})

test("a deleted account goes after a week with all that is its own", async () => {
  const ours = await team(service)
  const { owner, account_id } = ours
  await lived(ours)
  const invited = { email: "somebody@people.test", role: "member" }
  await owner.post("/v1/accounts/me/members/invite", invited)
  await owner.remove("/v1/accounts/me", { confirm: "Team" })
  await purgeAccountNow(parts, account_id)
  expect(await rowsNaming(store.read, "account_id", account_id)).toHaveProperty("projects")
  clock.advance({ seconds: WEEK })
  await purgeAccountNow(parts, account_id)
  expect(await rowsNaming(store.read, "account_id", account_id)).toEqual({})
  expect(await rowsNaming(store.read, "project_id", ours.project_id)).toEqual({})
  expect(await rowsNaming(store.read, "project_id", account_id)).toEqual({})
})

describe("the files of a deleted project", () => {
  const HOUR = 3600
  const attach = (project: TestProject, ...texts: string[]) =>
    project.post("/v1/emails", {
      ...{ from: "a@mailbox.test", to: "b@mailbox.test", subject: "s", text: "t" },
      attachments: texts.map((text) => ({
        filename: "a.txt",
        content: Buffer.from(text).toString("base64"),
      })),
    })
  const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex")
  const kept = async (...texts: string[]) => {
    const found = await Promise.all(texts.map((text) => parts.blobs.get(hashOf(text))))
    return found.map((bytes) => bytes !== undefined)
  }
  const deleted = ({ project_id }: TestProject) =>
    store.tx((tx) =>
      tx
        .update(projects)
        .set({ status: "deleting", deleting_at: secondsFromNow(WEEK) })
        .where(eq(projects.id, project_id)),
    )

  test("go with it, unless somebody else names them too", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    const [own, shared, foreign] = [newId(), newId(), newId()]
    expect((await attach(ours, own, shared)).status).toBe(201)
    expect((await attach(theirs, shared, foreign)).status).toBe(201)
    await deleted(ours)
    clock.advance({ seconds: WEEK })
    await purgeProjectNow(parts, ours.project_id)
    expect(await kept(own, shared, foreign)).toEqual([false, true, true])

    await deleted(theirs)
    clock.advance({ seconds: WEEK })
    await purgeProjectNow(parts, theirs.project_id)
    expect(await kept(shared, foreign)).toEqual([false, false])
  })

  test("go with it where they are mail that was submitted", async () => {
    const project = await service.project()
    const { login, submit } = testSubmission(service)
    const raw = `From: a@mailbox.test\n\n${"large \n".repeat(20_000)}`
    const both = ["ann@mailbox.test", "ben@mailbox.test"]
    await submit(await login(project.key), { to: both, raw })
    const ours = eq(messages.project_id, project.project_id)
    const rows = await store.read.select().from(messages).where(ours)
    const [sha256 = "", ...others] = rows.map(({ envelope }) => envelope?.submitted?.sha256 ?? "")
    expect(others).toEqual([sha256])
    expect(await parts.blobs.get(sha256)).toBeDefined()
    await deleted(project)
    clock.advance({ seconds: WEEK })
    await purgeProjectNow(parts, project.project_id)
    expect(await parts.blobs.get(sha256)).toBeUndefined()
  })

  test("go with it where they are mail of the mailbox", async () => {
    const project = await service.project()
    const { sha256 } = await parts.blobs.put(Buffer.from(`Subject: ${newId()}\r\n\r\n`))
    await putMail(service, project, { raw: { file: sha256 } })
    await deleted(project)
    clock.advance({ seconds: WEEK })
    await purgeProjectNow(parts, project.project_id)
    expect(await parts.blobs.get(sha256)).toBeUndefined()
  })

  test("stay while somebody is sending them again", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    const text = newId()
    await attach(ours, text)
    await deleted(ours)
    clock.advance({ seconds: WEEK })
    await parts.blobs.put(Buffer.from(text)) // the mail of theirs is not written yet
    await purgeProjectNow(parts, ours.project_id)
    clock.advance({ seconds: HOUR })
    expect((await attach(theirs, text)).status).toBe(201)
    expect(await kept(text)).toEqual([true])
  })
})
