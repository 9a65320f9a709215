import { expect, test } from "bun:test"
import { Resend } from "resend"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"

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
    replyTo: "desk@example.test",
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
    reply_to: [{ email: "desk@example.test", name: null }],
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

test("it is told what is wrong", async () => {
  const { resend } = await open()
  const refused = await resend.emails.send({ ...mail("Ding"), to: "nobody" })
  expect(refused.error).toMatchObject({ error: { code: "invalid_email" } })
  const stranger = new Resend("svc_live_nobody", { baseUrl: `${url}/v1` })
  const unknown = await stranger.emails.send(mail("Ding"))
  expect(unknown.error).toMatchObject({ error: { code: "unauthorized" } })
})
