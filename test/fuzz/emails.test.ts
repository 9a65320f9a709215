import { expect, test } from "bun:test"
import PostalMime from "postal-mime"
import { deliverAll } from "../harness/delivery"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { judged, PATIENCE_MS, run, sample } from "./judging"
import { headers, hostile, method, nearly, path, query, wellFormed } from "./requests"

const service = await sharedService()

test(
  "what is well-formed is taken, and comes out as it went in",
  async () => {
    const project = await service.project()
    const subjects = new Map<string, string>()
    await sample(wellFormed, async (body) => {
      const { status, body: answer } = await judged(project.post("/v1/emails", body))
      expect([status, answer.error]).toEqual([201, undefined])
      subjects.set(answer.id, body.subject as string)
      const read = await judged(project.get(`/v1/emails/${answer.id}`))
      expect(read.body.data).toMatchObject({ subject: body.subject, text: body.text })
    })
    const handed = await deliverAll(service)
    expect(handed.map(({ message_id }) => message_id).sort()).toEqual([...subjects.keys()].sort())
    for (const { message_id, raw, to } of handed) {
      const { from, to: named, cc = [], bcc, subject } = await PostalMime.parse(raw)
      expect(subject).toBe(subjects.get(message_id))
      expect(from?.address).toBe("bell@example.test")
      expect(bcc).toBeUndefined()
      const visible = [...(named ?? []), ...cc].map(({ address }) => address)
      expect(to).toEqual(expect.arrayContaining(visible))
      expect(Buffer.from(raw).toString("latin1")).not.toMatch(/[^\r]\n|\r[^\n]|\0/)
    }
  },
  PATIENCE_MS,
)

test(
  "what is nearly well-formed is taken or refused",
  async () => {
    const project = await service.project()
    await sample(nearly, async (body) => {
      const answer = await judged(project.post("/v1/emails", JSON.stringify(body)))
      const code = answer.body?.error?.code
      if (answer.status === 404) expect(code).toBe("template_not_found")
      else expect([201, 400, 413, 422]).toContain(answer.status)
    })
    await deliverAll(service)
    const { body } = await project.get("/v1/emails?status=failed")
    expect(body.data).toEqual([]) // what was taken can be composed
  },
  PATIENCE_MS,
)

test(
  "batches of all kinds are answered",
  async () => {
    const project = await service.project()
    const list = fc.array(fc.oneof(wellFormed, nearly), { maxLength: 5 })
    const batch = fc.oneof(
      list,
      list.map((messages) => ({ messages })),
    )
    await sample(fc.tuple(batch, headers), async ([body, extra]) => {
      const text = JSON.stringify(body)
      await judged(project.post("/v1/emails/batch", text, { ...extra }))
    })
  },
  PATIENCE_MS,
)

test(
  "hostile bodies and headers are refused or ignored",
  async () => {
    const project = await service.project()
    const where = fc.constantFrom("/v1/emails", "/v1/emails/batch", "/v1/api-keys")
    await sample(fc.tuple(where, hostile, headers), ([to, body, extra]) =>
      judged(project.post(to, body, { ...extra })),
    )
  },
  PATIENCE_MS,
)

test(
  "paths, methods and queries of all kinds are answered",
  async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", { ...fc.sample(wellFormed, run)[0] })).body
    const known = fc.constantFrom("/v1/emails", "/v1/events", "/v1/mailbox", `/v1/emails/${id}`)
    const asked = fc.tuple(method, fc.oneof(known, path), query)
    await sample(asked, ([verb, where, search]) => judged(project.call(verb, `${where}?${search}`)))
  },
  PATIENCE_MS,
)
