import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { endpoint, hook } from "./endpoints"

const service = await sharedService()
const strict = await sharedService({
  webhooks: { "webhooks.require_https": true, "webhooks.allow_private": [] },
})

const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, number) => [`X-${number}`, "v"]))

const nested = (levels: number): object =>
  levels === 0 ? { field: "type", op: "eq", value: "x" } : { not: nested(levels - 1) }

describe.each(["POST", "PATCH"])("%s refuses", (method) => {
  test.each<[string, Record<string, unknown>, string[]]>([
    ["no events", { events: [] }, ["events"]],
    ["an unknown type", { events: ["email.sent", "emial.sent"] }, ["events.1"]],
    ["an unknown prefix", { events: ["emial.*"] }, ["events.0"]],
    ["a description of two lines", { description: "a\nb" }, ["description"]],
    ["a format that there is not", { header_format: "none" }, ["header_format"]],
    ["no attempt", { retry_policy: { max_attempts: 0 } }, ["retry_policy.max_attempts"]],
    ["eleven attempts", { retry_policy: { max_attempts: 11 } }, ["retry_policy.max_attempts"]],
    ["no interval", { retry_policy: { intervals: [] } }, ["retry_policy.intervals"]],
    [
      "eleven intervals",
      { retry_policy: { intervals: Array(11).fill(1) } },
      ["retry_policy.intervals"],
    ],
    ["an interval of none", { retry_policy: { intervals: [0] } }, ["retry_policy.intervals.0"]],
    [
      "an interval of two days",
      { retry_policy: { intervals: [1, 172_800] } },
      ["retry_policy.intervals.1"],
    ],
    ["a rate of none", { rate_limit: 0 }, ["rate_limit"]],
    ["half a rate", { rate_limit: 0.5 }, ["rate_limit"]],
    ["21 headers", { headers: many(21) }, ["headers"]],
    ["a header that is no name", { headers: { "a b": "c" } }, ["headers"]],
    ["the same header twice", { headers: { "X-A": "1", "x-a": "2" } }, ["headers.x-a"]],
    ["a header of two lines", { headers: { "X-A": "1\r\nHost: b" } }, ["headers.X-A"]],
    ["a header with a NUL", { headers: { "X-A": "\0" } }, ["headers.X-A"]],
    ["a header that is no text", { headers: { "X-A": 1 } }, ["headers.X-A"]],
    ["a rule without an operator", { filter: { field: "type" } }, ["filter.op"]],
    ["a rule of six levels", { filter: nested(5) }, ["filter.not.not.not.not.not"]],
    ["a transform with a NUL", { transform: "\0" }, ["transform"]],
    ["metadata of 17 KiB", { metadata: { a: "x".repeat(17_000) } }, ["metadata"]],
    ["another version", { version: "2020-01-01" }, ["version"]],
  ])("%s", async (_, fields, paths) => {
    const refused = await asked(method, fields)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(paths)
  })

  test.each([
    "Host",
    "Content-Type",
    "content-length",
    "Content-Encoding",
    "Transfer-Encoding",
    "connection",
    "webhook-id",
    "Webhook-Signature",
    "X-Svc-Signature",
    "x-svc-anything",
  ])("the header %s", async (name) => {
    const refused = await asked(method, { headers: { [name]: "x" } })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual([`headers.${name}`])
  })

  test("a transform that is no template", async () => {
    const refused = await asked(method, { transform: "{{#if}" })
    expect(refusal(refused)).toEqual([422, "invalid_template"])
    expect(complaints(refused)).toEqual(["transform"])
  })

  test.each([
    "",
    "example.com",
    "ftp://example.com/",
    "https://user:pass@93.184.216.34/",
    "https://93.184.216.34:22/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest",
    "http://93.184.216.34/",
    "https://93.184.216.34/a b",
    "https://93.184.216.34/\n",
  ])("the address %j, where only the public internet is allowed", async (url) => {
    const project = await strict.project()
    const ask = async () => {
      if (method === "POST") return project.post("/v1/webhooks", hook({ url }))
      const { id } = await endpoint(project, { url: "https://93.184.216.34/" })
      return project.call("PATCH", `/v1/webhooks/${id}`, { body: { url } })
    }
    const refused = await ask()
    expect(refusal(refused)).toEqual([422, "invalid_url"])
    expect(complaints(refused)).toEqual(["url"])
  })
})

async function asked(method: string, fields: Record<string, unknown>) {
  const project = await service.project()
  if (method === "POST") return project.post("/v1/webhooks", hook(fields))
  const { id } = await endpoint(project)
  return project.call("PATCH", `/v1/webhooks/${id}`, { body: fields })
}

test.each<[string, unknown, string]>([
  ["rate_limit", 0, "from 1 to 1000"],
  ["transform", "", "not be empty"],
  ["filter", [], "must be an object"],
])("what is wrong with %s is said in words, though it may be null", async (name, value, words) => {
  const project = await service.project()
  const { body } = await project.post("/v1/webhooks", hook({ [name]: value }))
  expect(body.error.details.fields[0].message).toContain(words)
})

test.each([
  ["no url", { url: undefined }],
  ["no events", { events: undefined }],
])("%s is a missing field", async (_, fields) => {
  const project = await service.project()
  const refused = await project.post("/v1/webhooks", hook(fields))
  expect(refusal(refused)).toEqual([422, "missing_required_field"])
})

test.each(["whsec_", "whsec_AAAA", "secret", `whsec_${Buffer.alloc(65).toString("base64")}`])(
  "the secret %j is refused",
  async (secret) => {
    const project = await service.project()
    const refused = await project.post("/v1/webhooks", hook({ secret }))
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["secret"])
  },
)

test("unknown fields are ignored, unless strictness is asked for", async () => {
  const project = await service.project()
  const wish = hook({ colour: "red", filter: { field: "a", op: "exists" }, metadata: { any: 1 } })
  expect((await project.post("/v1/webhooks", wish)).status).toBe(201)
  const refused = await project.post("/v1/webhooks", wish, { "x-strict": "1" })
  expect(refusal(refused)).toEqual([422, "validation_error"])
  expect(complaints(refused)).toEqual(["colour"])
})

test("https to the public internet needs nobody's leave", async () => {
  const project = await strict.project()
  for (const url of ["https://93.184.216.34/", "https://93.184.216.34:8443/a?b=c"]) {
    expect((await project.post("/v1/webhooks", hook({ url }))).status).toBe(201)
  }
})
