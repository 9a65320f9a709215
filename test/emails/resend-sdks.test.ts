import { expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const GO = { "user-agent": "resend-go/3.12.0" }
const PYTHON = { "user-agent": "resend-python:2.32.2" }

/** Go and Python send a file as the list of its bytes. */
const listed = (bytes: Uint8Array) => [{ filename: "photo.png", content: [...bytes] }]

test.each([
  ["300 kB", 300_000],
  ["three megabytes, which a thread parses,", 3_000_000],
])("a file of %s may come as a list of numbers", async (_, length) => {
  const project = await service.project()
  const bytes = Uint8Array.from({ length }, (_, at) => (at * 31) % 251)
  const attachments = listed(bytes)
  const sent = await project.post("/v1/emails", mail({ attachments }), GO)
  expect(sent.status).toBe(201)
  const [file] = (await project.get(`/v1/emails/${sent.body.id}`)).body.data.attachments
  expect(file).toMatchObject({ content_type: "image/png", size: length })
  const found = await project.get(`/v1/emails/${sent.body.id}/attachments/${file.id}`)
  expect(Buffer.from(found.bytes).equals(bytes)).toBe(true)
})

test("a batch with such files is read, and a replay gives the same answer", async () => {
  const project = await service.project()
  const attachments = listed(new Uint8Array(120_000))
  const headers = { ...PYTHON, "idempotency-key": crypto.randomUUID() }
  const send = () => project.post("/v1/emails/batch", [mail({ attachments }), mail()], headers)
  const [first, second] = [await send(), await send()]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(second.body.data).toEqual(first.body.data)
})

test("without the user agent, and on other paths, 100,000 values are the most", async () => {
  const project = await service.project()
  const large = mail({ attachments: listed(new Uint8Array(120_000)) })
  expect(refusal(await project.post("/v1/emails", large))).toEqual([400, "invalid_json"])
  const numbers = { metadata: { a: Array(120_000).fill(1) } }
  expect(refusal(await project.post("/v1/webhooks", numbers, GO))).toEqual([400, "invalid_json"])
})
