import { expect, test } from "bun:test"
import { judges } from "./json-schema"
import { faultsOf } from "./published"

const answer = (body: object, status = 200) => Response.json(body, { status })

const meta = { request_id: "req_1" }
const HEALTH = { status: "ok", version: "1.0.0", time: "2026-11-21T10:30:00.000Z" }

test("an answer as published has no fault", async () => {
  expect(await faultsOf("GET", "/v1/health", answer({ data: HEALTH, meta }))).toEqual([])
})

test("a field that the schema does not name is a fault, with its route, path and value", async () => {
  const body = { data: { ...HEALTH, mood: "good" }, meta }
  expect(await faultsOf("GET", "/v1/health", answer(body))).toEqual([
    'GET /v1/health 200: body.data.mood: the schema does not name it: "good"',
  ])
})

test.each([
  ["a field that is missing", { data: { ...HEALTH, time: undefined }, meta }],
  ["a word that is not of the set", { data: { ...HEALTH, status: "fine" }, meta }],
  ["a time of another form", { data: { ...HEALTH, time: "2026-11-21" }, meta }],
  ["a value of another type", { data: { ...HEALTH, version: 1 }, meta }],
  ["another envelope", HEALTH],
])("%s is a fault", async (_, body) => {
  expect(await faultsOf("GET", "/v1/health", answer(body))).not.toEqual([])
})

const error = (code: string) => ({
  error: { code, message: "No.", details: {} },
  meta: { ...meta, docs: `/docs/errors/${code}` },
})

test("a refusal has a status and a code of its route", async () => {
  const path = "/v1/jobs/019a"
  expect(await faultsOf("GET", path, answer(error("not_found"), 404))).toEqual([])
  expect(await faultsOf("GET", path, answer(error("template_not_found"), 404))).toHaveLength(1)
  expect(await faultsOf("GET", path, answer(error("conflict"), 409))).toHaveLength(1)
})

test("a header of ours that is not told is a fault", async () => {
  const told = answer({ data: HEALTH, meta })
  told.headers.set("x-request-id", "req_1")
  expect(await faultsOf("GET", "/v1/health", told)).toEqual([])
  told.headers.set("x-mood", "good")
  expect(await faultsOf("GET", "/v1/health", told)).toEqual([
    "GET /v1/health 200: the header x-mood is not told",
  ])
})

test("a path or a content type that is not described is a fault", async () => {
  expect(await faultsOf("GET", "/v1/nothing", answer({}))).toHaveLength(1)
  const text = new Response("ok", { headers: { "content-type": "text/plain" } })
  expect(await faultsOf("GET", "/v1/health", text)).toHaveLength(1)
})

test("a keyword that no test knows is an error, never ignored", () => {
  expect(() => judges({})({ multipleOf: 2 })).toThrow("multipleOf")
  expect(() => judges({})({ type: "string", format: "color" })).toThrow("color")
})
