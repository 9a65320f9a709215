import { expect, test } from "bun:test"
import { eventTypes } from "../../src/events/registry"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, NOWHERE, replayAll } from "../webhooks/endpoints"
import { judged, PATIENCE_MS, sample } from "./judging"
import { anything, exactValue, query, text } from "./requests"

const service = await sharedService()

const type = fc.constantFrom(...eventTypes.map((entry) => entry.type))
const pattern = fc.oneof(
  type,
  type.map((one) => `${one.split(".")[0]}.*`),
  fc.constant("*"),
)
const line = fc.stringMatching(/^[ -~]{1,40}$/)
const comparison = fc.record({
  field: fc.constantFrom("type", "data.subject", "data.tags.0", "data.user.email"),
  op: fc.constantFrom("eq", "ne", "contains", "starts_with"),
  value: fc.string({ maxLength: 10 }),
})
const rule = fc.oneof(
  comparison,
  fc.array(comparison, { minLength: 1, maxLength: 4 }).map((all) => ({ all })),
  comparison.map((not) => ({ not })),
)

/** Endpoints that have to be taken. */
const wellFormed = fc.record(
  {
    url: fc.constantFrom(NOWHERE, "http://127.0.0.1:8443/a?b=c#d", "http://localhost:2000/ü"),
    events: fc.array(pattern, { minLength: 1, maxLength: 8 }),
    description: fc.oneof(line, fc.constant(null)),
    headers: fc.dictionary(fc.stringMatching(/^X-[A-Z]{1,9}$/), line, { maxKeys: 20 }),
    header_format: fc.constantFrom("standard", "legacy", "both"),
    retry_policy: fc.record(
      {
        max_attempts: fc.integer({ min: 1, max: 10 }),
        intervals: fc.array(fc.integer({ min: 1, max: 86_400 }), { minLength: 1, maxLength: 10 }),
      },
      { requiredKeys: [] },
    ),
    rate_limit: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.constant(null)),
    filter: fc.oneof(rule, fc.constant(null)),
    transform: fc.constantFrom(null, '{"id":"{{id}}"}', "{{json data}}"),
    metadata: fc.dictionary(fc.stringMatching(/^[a-z]{1,64}$/), exactValue, { maxKeys: 50 }),
    version: fc.constant("2026-02-01"),
  },
  { requiredKeys: ["url", "events"] },
)

const FIELDS = [
  "url",
  "events",
  "description",
  "headers",
  "header_format",
  "retry_policy",
  "rate_limit",
  "filter",
  "transform",
  "metadata",
  "version",
  "secret",
  "enabled",
]

/** Well-formed, but for one to three fields. */
const nearly = fc
  .tuple(
    wellFormed,
    fc.array(fc.tuple(fc.constantFrom(...FIELDS), anything), { minLength: 1, maxLength: 3 }),
  )
  .map(([body, changes]): unknown => ({ ...body, ...Object.fromEntries(changes) }))

const whatever = fc.oneof(nearly, anything)

test(
  "a well-formed endpoint is taken, and comes out as it went in",
  async () => {
    const project = await service.project()
    await sample(wellFormed, async (body) => {
      const answer = await judged(project.post("/v1/webhooks", body))
      expect([answer.status, answer.body.error]).toEqual([201, undefined])
      const { id } = answer.body.data
      const { events, retry_policy, headers = {}, ...rest } = body
      const masked = Object.fromEntries(Object.keys(headers).map((name) => [name, "****"]))
      const read = (await judged(project.get(`/v1/webhooks/${id}`))).body.data
      expect(read).toMatchObject({ ...rest, events: [...new Set(events)] })
      expect(read.headers).toEqual(masked)
      expect(read.retry_policy).toMatchObject(retry_policy ?? {})
      await judged(project.call("DELETE", `/v1/webhooks/${id}`))
    })
  },
  PATIENCE_MS,
)

test(
  "what is nearly well-formed is taken or refused, as new and as a change",
  async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await sample(whatever, async (body) => {
      const sent = JSON.stringify(body) ?? ""
      const made = await judged(project.post("/v1/webhooks", sent))
      expect([201, 400, 413, 422]).toContain(made.status)
      const { status } = await judged(project.call("PATCH", `/v1/webhooks/${id}`, { body: sent }))
      expect([200, 400, 413, 422]).toContain(status)
      if (made.status === 201) await project.call("DELETE", `/v1/webhooks/${made.body.data.id}`)
    })
    await judged(project.get(`/v1/webhooks/${id}`))
  },
  PATIENCE_MS,
)

test(
  "events with any data are recorded, delivered and shown",
  async () => {
    const project = await service.project()
    const filter = {
      any: [{ field: "data.subject", op: "exists" }, { not: { field: "id", op: "exists" } }],
    }
    const { id } = await endpoint(project, { filter })
    const data = fc.dictionary(text, fc.oneof(text, fc.jsonValue({ maxDepth: 3 })), { maxKeys: 6 })
    await sample(fc.tuple(type, data), async ([one, more]) => {
      const asked = JSON.stringify({ type: one, data: more })
      const { status, body } = await judged(project.post("/v1/events/trigger", asked))
      expect([201, 400]).toContain(status)
      if (status === 201) await judged(project.get(`/v1/events/${body.data.id}`))
    })
    for (const delivery of await deliveriesOf(project, id, "?per_page=100")) {
      await judged(project.get(`/v1/webhooks/${id}/deliveries/${delivery.id}`))
    }
  },
  PATIENCE_MS,
)

test(
  "every action on an endpoint is answered, whatever it is asked with",
  async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project)
    const verbs = ["enable", "disable", "pause", "rotate-secret", "replay", "deliveries/bulk-retry"]
    const span = fc.record(
      { since: text, until: text, event_types: fc.array(text), status: anything, replay: anything },
      { requiredKeys: [] },
    )
    const body = fc.oneof(span, anything)
    await sample(fc.tuple(fc.constantFrom(...verbs), body), ([verb, wish]) =>
      judged(project.post(`/v1/webhooks/${id}/${verb}`, JSON.stringify(wish) ?? "")),
    )
    const lists = fc.constantFrom("", "/deliveries", "/stats", `/deliveries/${id}`)
    await sample(fc.tuple(lists, query), ([list, search]) =>
      judged(project.get(`/v1/webhooks/${id}${list}?${search}`)),
    )
    await replayAll(service)
  },
  PATIENCE_MS,
)
