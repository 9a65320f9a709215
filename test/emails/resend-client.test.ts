import { expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Resend } from "resend"
import { millis, secondsFromNow } from "../../src/core/time"
import { signedHeaders } from "../../src/lib/signature"
import { freshName } from "../domains/acme"
import { deliverAll } from "../harness/delivery"
import { NOBODY } from "../harness/mail"
import { root } from "../harness/migrations"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { NOWHERE } from "../webhooks/endpoints"

/** The public client of another service: what is written for it works here, pointed at `/v1`. */
const service = await sharedService()
const { url } = service.listen()

async function open() {
  const project = await service.project()
  return { project, resend: new Resend(project.key, { baseUrl: `${url}/v1` }) }
}

const mail = (subject: string) => ({
  from: "Bell <bell@example.test>",
  to: ["ann@example.test"],
  subject,
  html: "<p>Dong</p>",
})

test("it sends, with everything it knows", async () => {
  const { project, resend } = await open()
  const { data, error } = await resend.emails.send({
    ...mail("Ding"),
    text: "Dong",
    cc: "copy@example.test",
    bcc: ["hidden@example.test"],
    replyTo: ["Desk <desk@example.test>", "two@example.test"],
    headers: { "X-Kind": "bell" },
    tags: [{ name: "kind", value: "bell" }],
    attachments: [{ filename: "a.txt", content: Buffer.from("abc"), contentType: "text/plain" }],
  })
  expect(error).toBeNull()
  const record = (await project.get(`/v1/emails/${data?.id}`)).body.data
  expect(record).toMatchObject({
    from: { email: "bell@example.test", name: "Bell" },
    to: { email: "ann@example.test" },
    cc: [{ email: "copy@example.test" }],
    bcc: [{ email: "hidden@example.test" }],
    subject: "Ding",
    html: "<p>Dong</p>",
    text: "Dong",
    reply_to: [
      { email: "desk@example.test", name: "Desk" },
      { email: "two@example.test", name: null },
    ],
    headers: { "X-Kind": "bell" },
    tags: ["kind:bell"],
    attachments: [{ filename: "a.txt", size: 3, content_type: "text/plain" }],
  })
})

test("it reads what became of it, from the envelope", async () => {
  const { resend } = await open()
  const sent = await resend.emails.send(mail("Ding"))
  await deliverAll(service)
  const { data, error } = await resend.emails.get(sent.data?.id ?? "")
  expect(error).toBeNull()
  const { data: record } = data as unknown as { data: Record<string, unknown> }
  expect(record).toMatchObject({ id: sent.data?.id, status: "delivered", subject: "Ding" })
})

test("it repeats safely", async () => {
  const { project, resend } = await open()
  const options = { idempotencyKey: "order-7" }
  const first = await resend.emails.send(mail("Ding"), options)
  const second = await resend.emails.send(mail("Ding"), options)
  expect(second.data?.id).toBe(first.data?.id ?? "none")
  expect((await project.get("/v1/emails")).body.meta.total).toBe(1)
})

test("it schedules, moves the time and cancels", async () => {
  const { project, resend } = await open()
  const [first, second] = [secondsFromNow(3600), secondsFromNow(7200)]
  const sent = await resend.emails.send({ ...mail("Later"), scheduledAt: first })
  expect(sent.error).toBeNull()
  const id = sent.data?.id ?? ""
  const read = async () => (await project.get(`/v1/emails/${id}`)).body.data
  expect(await read()).toMatchObject({ status: "queued", scheduled_at: first })
  const moved = await resend.emails.update({ id, scheduledAt: second })
  expect(moved.error).toBeNull()
  expect(await read()).toMatchObject({ status: "queued", scheduled_at: second })
  const cancelled = await resend.emails.cancel(id)
  expect(cancelled.error).toBeNull()
  expect(await read()).toMatchObject({ status: "failed", status_reason: "cancelled" })
  const words = await resend.emails.send({ ...mail("Soon"), scheduledAt: "in 1 min" })
  expect(words.error).toMatchObject({ name: "validation_error", statusCode: 422 } as object)
})

test("it sends batches, strict and permissive", async () => {
  const { project, resend } = await open()
  const sent = await resend.batch.send([mail("one"), mail("two")])
  expect(sent.error).toBeNull()
  const ids = sent.data?.data.map(({ id }) => id)
  const rows = (await project.get("/v1/emails")).body.data
  expect(rows.map(({ id }: { id: string }) => id).reverse()).toEqual(ids as string[])

  const bad = { ...mail("bad"), to: "nobody" }
  const refused = await resend.batch.send([mail("three"), bad])
  expect(refused.data).toBeNull()
  expect(refused.error).toMatchObject({ error: { code: "invalid_email" } })

  const options = { batchValidation: "permissive" } as const
  const some = await resend.batch.send([bad, mail("four")], options)
  expect(some.error).toBeNull()
  expect(some.data?.data).toHaveLength(1)
  expect(some.data?.errors).toMatchObject([{ index: 0, message: expect.any(String) }])
})

test("it is told what is wrong, in the fields where it looks", async () => {
  const { resend } = await open()
  const refused = await resend.emails.send({ ...mail("Ding"), to: "nobody" })
  expect(refused.error).toMatchObject({
    name: "invalid_email",
    message: 'to: The value must be one email address. You gave "nobody".',
    statusCode: 422,
    error: { code: "invalid_email" },
  } as object)
  const stranger = new Resend("svc_live_nobody", { baseUrl: `${url}/v1` })
  const unknown = await stranger.emails.send(mail("Ding"))
  expect(unknown.error).toMatchObject({ name: "unauthorized", statusCode: 401 } as object)
})

test("it works with a final slash in its base URL", async () => {
  const project = await service.project()
  const resend = new Resend(project.key, { baseUrl: `${url}/v1/` })
  const sent = await resend.emails.send(mail("Ding"))
  expect(sent.error).toBeNull()
  const { data, error } = await resend.emails.get(sent.data?.id ?? "")
  expect(error).toBeNull()
  expect(data).toMatchObject({ data: { subject: "Ding" } })
  expect((await resend.batch.send([mail("one")])).error).toBeNull()
  expect((await resend.domains.list({ limit: 1 })).error).toBeNull()
  const refused = await resend.emails.send({ ...mail("Ding"), to: "nobody" })
  expect(refused.error).toMatchObject({ name: "invalid_email", statusCode: 422 } as object)
})

test("it walks through lists in both directions", async () => {
  const { resend } = await open()
  const ids: string[] = []
  for (const subject of ["one", "two", "three", "four"]) {
    ids.unshift((await resend.emails.send(mail(subject))).data?.id ?? "")
  }
  const [newest = "", second = "", third = "", oldest = ""] = ids
  const first = await resend.emails.list({ limit: 2 })
  expect(first.data).toMatchObject({ has_more: true, data: [{ id: newest }, { id: second }] })
  const after = await resend.emails.list({ limit: 2, after: second })
  expect(after.data).toMatchObject({ has_more: false, data: [{ id: third }, { id: oldest }] })
  const before = await resend.emails.list({ limit: 2, before: oldest })
  expect(before.data).toMatchObject({ has_more: true, data: [{ id: second }, { id: third }] })
  const lost = await resend.emails.list({ after: NOBODY })
  expect(lost.error).toMatchObject({ name: "validation_error", statusCode: 422 } as object)
})

test("it makes and changes webhooks, and verifies what they receive", async () => {
  const { project, resend } = await open()
  const endpoint = NOWHERE
  const made = await resend.webhooks.create({ endpoint, events: ["email.delivery_delayed"] })
  const webhook = recordIn(made.data)
  expect(webhook).toMatchObject({ url: endpoint, events: ["email.soft_bounced"] })
  const id = webhook.id as string
  const changed = await resend.webhooks.update(id, { events: ["email.sent"] })
  expect(changed.error).toBeNull()
  expect(recordIn((await resend.webhooks.get(id)).data).events).toEqual(["email.sent"])
  const disabled = await resend.webhooks.update(id, { status: "disabled" })
  expect(disabled.error).toMatchObject({ name: "validation_error", statusCode: 422 } as object)

  const event = (await project.post("/v1/events/trigger", { type: "email.sent" })).body.data
  const payload = JSON.stringify(event)
  const secret = webhook.secret as string
  const timestamp = Math.floor(millis() / 1000)
  const signing = { id: event.id, timestamp, body: payload, secrets: [secret] } as const
  const headers = signedHeaders({ ...signing, format: "standard" })
  const verified = resend.webhooks.verify({
    payload,
    webhookSecret: secret,
    headers: {
      id: headers["webhook-id"] ?? "",
      timestamp: headers["webhook-timestamp"] ?? "",
      signature: headers["webhook-signature"] ?? "",
    },
  })
  expect(verified).toEqual(event)
})

test("it makes domains, and keys that are bound to them", async () => {
  const { project, resend } = await open()
  const made = await resend.domains.create({ name: freshName() })
  const domain = recordIn(made.data)
  const wanted = { name: "shop", permission: "sending_access", domain_id: domain.id } as const
  const key = recordIn((await resend.apiKeys.create(wanted as never)).data)
  expect(key).toMatchObject({ scopes: ["email:send"], domain_id: domain.id })
  const bound = new Resend(key.key as string, { baseUrl: `${url}/v1` })
  const refused = await bound.emails.send(mail("Ding"))
  expect(refused.error).toMatchObject({ name: "forbidden", statusCode: 403 } as object)

  const nothing = await resend.domains.update({ id: domain.id as string })
  expect(nothing.error?.message).toContain("names no field that can change")
  const tracked = await resend.domains.update({ id: domain.id as string, clickTracking: true })
  expect(tracked.error?.message).toContain("click_tracking is not available")
  expect((await project.get("/v1/domains")).body.meta.total).toBe(1)
})

test("what nothing acts upon is refused by its name", async () => {
  const { resend } = await open()
  const topic = await resend.emails.send({ ...mail("Ding"), topicId: NOBODY })
  expect(topic.error?.message).toContain("topic_id is not available")
  const region = await resend.domains.create({ name: freshName(), region: "eu-west-1" })
  expect(region.error?.message).toContain("region is not available")
})

test("an attachment that cannot be fetched is told by its field", async () => {
  const { resend } = await open()
  const attachments = [{ filename: "a.pdf", path: "https://127.0.0.1/a.pdf" }]
  const { error } = await resend.emails.send({ ...mail("Ding"), attachments })
  expect(error).toMatchObject({ name: "invalid_url", statusCode: 422 } as object)
  expect(error?.message).toContain("attachments.0.path")
})

test("the program of docs/resend.md runs as it stands there", async () => {
  await using own = await testService({ rules: { sending_domains: new Set(["acme.example"]) } })
  const { key } = await own.project()
  const page = readFileSync(join(root, "docs/resend.md"), "utf8")
  const program = /```ts\n(.*?)```/s.exec(page)?.[1] ?? ""
  const child = Bun.spawn([process.execPath, "run", "-"], {
    cwd: root,
    env: { ...process.env, BELFRY_API_KEY: key, BELFRY_URL: own.listen().url },
    stdin: Buffer.from(`${program}\nconsole.log(JSON.stringify({ data, error }))`),
    stdout: "pipe",
    stderr: "inherit",
  })
  expect(JSON.parse(await child.stdout.text())).toMatchObject({
    error: null,
    data: { id: expect.any(String) },
  })
})

/** The record is one level deeper than the client believes. */
const recordIn = (data: unknown) => (data as { data: Record<string, unknown> }).data

test("it makes templates, and sends with them", async () => {
  const { project, resend } = await open()
  const made = await resend.templates.create({
    name: "order-confirmation",
    subject: "Order {{{ID}}}",
    html: "<p>{{{PRODUCT}}} for {{{NAME}}}</p>",
    variables: [
      { key: "PRODUCT", type: "string", fallbackValue: "Something" },
      { key: "ID", type: "number", fallbackValue: 7 },
    ],
  })
  expect(made.error).toBeNull()
  const { data: record } = made.data as unknown as { data: { id: string } }
  expect(record).toMatchObject({
    status: "published",
    variables: [
      { key: "PRODUCT", type: "string", fallback: "Something" },
      { key: "ID", type: "number", fallback: 7 },
    ],
  })
  const sent = await resend.emails.send({
    from: "Bell <bell@example.test>",
    to: "ann@example.test",
    template: { id: record.id, variables: { NAME: "Ann" } },
  })
  expect(sent.error).toBeNull()
  expect((await project.get(`/v1/emails/${sent.data?.id}`)).body.data).toMatchObject({
    subject: "Order 7",
    html: "<p>Something for Ann</p>",
    template: { id: record.id, name: "order-confirmation", version: 1 },
  })
  const refused = await resend.templates.create({ name: "Order Confirmation", html: "x" })
  expect(refused.error).toMatchObject({ name: "validation_error", statusCode: 422 } as object)
  expect(refused.error?.message).toContain("name")
  const byName = await resend.templates.get("order-confirmation")
  expect(byName.error).toMatchObject({ name: "template_not_found", statusCode: 404 } as object)
})
