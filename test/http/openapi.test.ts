import { describe, expect, test } from "bun:test"
import { Type as t } from "@sinclair/typebox"
import { type AppParts, routeTable } from "../../src/app"
import { codes, type ErrorCode } from "../../src/core/errors"
import { type OpenApi, openApi } from "../../src/http/openapi"
import { isDescribed } from "../../src/http/route"
import { published } from "../harness/published"

const table = routeTable({} as AppParts).filter(isDescribed)
const description: OpenApi = JSON.parse(JSON.stringify(openApi(table, "1.2.3")))

const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
)

/** Every object in the document, with its place. */
function* walk(value: unknown, place = "#"): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== "object" || value === null) return
  if (!Array.isArray(value)) yield [place, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* walk(inner, `${place}/${name}`)
}

const lookup = (reference: string) =>
  reference
    .slice(2)
    .split("/")
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], description)

const SENTENCE = expect.stringMatching(/^[`A-Za-z\d<{].{5,}/)

describe("the description", () => {
  test("has every row of the table", () => {
    const found = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
    expect(found.sort()).toEqual(table.map(({ method, path }) => `${method} ${path}`).sort())
    expect(description).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } })
  })

  test("refers only to what is there, and uses all of it", () => {
    const used = new Set<string>()
    for (const [place, { $ref }] of walk(description)) {
      if (typeof $ref !== "string") continue
      used.add($ref)
      expect([place, lookup($ref)]).toEqual([place, expect.anything()])
    }
    const { securitySchemes: _, ...kinds } = description.components
    for (const [kind, named] of Object.entries(kinds)) {
      for (const name of Object.keys(named)) expect(used).toContain(`#/components/${kind}/${name}`)
    }
  })

  test("declares every parameter of a path, once, and no other", () => {
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = operation.parameters.flatMap((one) =>
        "in" in one && one.in === "path" ? [one] : [],
      )
      expect(declared.map(({ name }) => name)).toEqual(inPath as string[])
      expect(declared.every(({ required }) => required)).toBe(true)
      for (const one of operation.parameters) {
        if ("name" in one) expect([one.name, one.description]).toEqual([one.name, SENTENCE])
      }
      const names = operation.parameters.map((one) => JSON.stringify(one))
      expect(new Set(names).size).toBe(names.length)
    }
  })

  test("names every operation once, and says who may call it", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const titles = operations.map(({ operation }) => operation.summary)
    expect(new Set(titles).size).toBe(titles.length)
    expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([])
    for (const { method, path, operation } of operations) {
      const row = table.find((one) => one.path === path && one.method === method.toUpperCase())
      expect(operation["x-callers"]).toEqual(row?.callers ?? [])
      expect(operation["x-required-scope"]).toBe(row?.scope ?? "")
      const open = operation["x-callers"].includes("none")
      const optional = operation.security.every((one) => Object.keys(one).length === 0)
      expect(optional || JSON.stringify(operation.security[0]) === "{}").toBe(open)
      for (const scheme of operation.security.flatMap(Object.keys)) {
        expect(description.components.securitySchemes).toHaveProperty(scheme)
      }
    }
  })

  test("lists the successes and the failures of each", () => {
    for (const { method, path, operation } of operations) {
      const row = table.find((one) => one.path === path && one.method === method.toUpperCase())
      const statuses = Object.keys(operation.responses).map(Number)
      const wanted = row?.callers.includes("none") ? [422, 429] : [401, 403, 422, 429]
      expect(statuses).toEqual(expect.arrayContaining([...(row?.status ?? []), ...wanted]))
      if (operation.requestBody) expect(statuses).toContain(400)
      for (const [status, told] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^[1-5]\d\d$/)
        expect("$ref" in told || "description" in told).toBe(true)
      }
    }
  })

  test("says which codes a failure can have, each under its own status", () => {
    const failures = operations.flatMap(({ operation }) => Object.entries(operation.responses))
    for (const [status, told] of failures) {
      const { $ref } = told as { $ref?: string }
      const known = $ref ? lookup($ref) : told
      for (const code of (known as { "x-error-codes"?: ErrorCode[] })["x-error-codes"] ?? []) {
        const [usual, , ...elsewhere]: readonly [number, string, ...number[]] = codes[code]
        expect([usual, ...elsewhere]).toContain(Number(status))
      }
    }
  })

  test("has the records of the contract by name", () => {
    const names = Object.keys(description.components.schemas)
    const wanted = ["Account", "ApiKey", "ConsoleUser", "Delivery", "DeliveryDetail", "Domain"]
    const more = ["Email", "EmailEvents", "EventEnvelope", "EventType", "Invitation", "Job"]
    const rest = ["Member", "Project", "ProviderConfig", "Session", "Settings", "Usage", "Webhook"]
    expect(names).toEqual(expect.arrayContaining([...wanted, ...more, ...rest]))
  })

  test("has the addresses in mail, and no events of what is to come", async () => {
    const paths = Object.keys(description.paths)
    expect(paths).toEqual(expect.arrayContaining(["/u/{token}", "/p/{token}", "/t/o/{token}"]))
    expect(Object.keys((await published()).paths)).toEqual(expect.arrayContaining(paths))
    expect(Object.keys(description.webhooks)).toContain("email.sent")
    expect(Object.keys(description.webhooks)).not.toContain("user.login")
  })

  test("limits every list and every free object of a body, and names what must not be", () => {
    const bodies = operations.map(({ operation }) => operation.requestBody ?? {})
    for (const [place, schema] of walk(bodies)) {
      const types = [schema.type ?? []].flat()
      if (types.includes("array"))
        expect([place, schema.maxItems]).toEqual([place, expect.any(Number)])
      if (types.includes("object") && !schema.properties) {
        expect([place, schema.maxProperties]).toEqual([place, expect.any(Number)])
      }
    }
    const subscriber = JSON.stringify(description.paths["/v1/subscribers"]?.post?.requestBody)
    expect(subscriber).toContain('"not":{"enum":["batch","bulk"')
    expect(subscriber).toContain('"maxProperties":50')
  })

  test("knows lists by their meta, and repetition by its header", () => {
    const list = JSON.stringify(description.paths["/v1/emails"]?.get)
    expect(list).toContain("#/components/schemas/ListMeta")
    const send = JSON.stringify(description.paths["/v1/emails"]?.post)
    expect(send).toContain("#/components/parameters/IdempotencyKey")
    expect(list).not.toContain("IdempotencyKey")
  })

  test("has every code of an error", () => {
    const text = JSON.stringify(description.components.schemas.Error)
    for (const code of Object.keys(codes)) expect(text).toContain(`"${code}"`)
  })

  test("holds schemas only: no function, symbol or regular expression was lost", () => {
    for (const [place, schema] of walk(description)) {
      if (!place.includes("/schema") || place.includes("/examples")) continue
      if (/\/(?:properties|not)$/.test(place)) continue // of fields, which are called as they like
      const types = [schema.type ?? []].flat()
      const kinds = ["string", "integer", "number", "boolean", "object", "array", "null"]
      expect([place, kinds]).toEqual([place, expect.arrayContaining(types)])
      for (const name of (schema.required ?? []) as string[]) {
        expect([place, schema.properties]).toEqual([
          place,
          expect.objectContaining({ [name]: expect.anything() }),
        ])
      }
    }
  })
})

test("a route for subscribers is described with their token, which stands nowhere without one", () => {
  const row = {
    ...{ method: "GET" as const, path: "/v1/subscriber-inbox", callers: ["subscriber" as const] },
    ...{
      scope: "-",
      status: [200] as [number],
      summary: "For subscribers",
      response: t.Object({}),
      handle: () => ({ data: {} }),
    },
  }
  const described = openApi([...table, row], "1")
  const operation = described.paths[row.path]?.get
  expect(operation?.security).toEqual([{ inboxToken: [] }])
  expect(operation?.["x-callers"]).toEqual(["subscriber"])
  expect(operation?.["x-codeSamples"][0]?.source).toContain("Authorization: Bearer $INBOX_TOKEN")
  expect(Object.keys(operation?.responses ?? {})).toContain("403")
  expect(Object.keys(described.components.securitySchemes)).toContain("inboxToken")
  const none = openApi(
    table.filter(({ callers }) => !callers.includes("subscriber")),
    "1",
  )
  expect(Object.keys(none.components.securitySchemes)).not.toContain("inboxToken")
})

test("the credentials of applications and of their users are described where they are taken", () => {
  const own = { status: [200] as [number], summary: "For apps", response: t.Object({}) }
  const handle = () => ({ data: {} })
  const rows = [
    { path: "/v1/auth/both", callers: ["app" as const, "key" as const], scope: "auth:write" },
    { path: "/v1/auth/user", callers: ["user" as const], scope: "-" },
  ].map((row) => ({ method: "POST" as const, ...own, ...row, handle }))
  const described = openApi([...table, ...rows], "1")
  const [both, user] = rows.map(({ path }) => described.paths[path]?.post)
  const schemes = both?.security.flatMap(Object.keys)
  expect(schemes).toEqual(["apiKey", "applicationSecret", "bearer", "applicationKey"])
  expect(user?.security).toEqual([{ userToken: [] }])
  expect(user?.["x-codeSamples"][0]?.source).toContain("Authorization: Bearer $USER_TOKEN")
})
