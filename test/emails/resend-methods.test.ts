import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { Resend } from "resend"
import { secondsFromNow } from "../../src/core/time"
import { domains } from "../../src/domains/tables"
import { addDomain } from "../domains/acme"
import { mail } from "../harness/mail"
import { root } from "../harness/migrations"
import { testService } from "../harness/service"
import { endpoint } from "../webhooks/endpoints"
import { callMethod, methodsOf, type Things } from "./resend-calls"

const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())

/** In front of the service, to know what was answered: the client does not tell the status. */
let status: number | undefined
const front = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const response = await service.app.handle(request)
    status = response.status
    return response
  },
})
afterAll(() => front.stop(true))

const project = await service.project()
const resend = new Resend(project.key, { baseUrl: `http://127.0.0.1:${front.port}/v1` })

/** The rows of the table in the docs: what each method answers. */
const documented = new Map(
  [
    ...readFileSync(join(root, "docs/resend.md"), "utf8").matchAll(
      /^\| `([\w.]+)` \| ([^|]+) \| [^|]+ \|$/gm,
    ),
  ].map(([, method = "", answer = ""]) => [method, answer.trim()]),
)

/** What calls no server, and `webhooks.verify` has a test of its own. */
const LOCAL = ["webhooks.verify", "logError"]

const methods = methodsOf(resend).filter((method) => !LOCAL.includes(method))

/** What the methods are called for. */
async function things(): Promise<Things> {
  const attachments = [{ filename: "a.txt", content: "YWJj" }]
  const sent = await project.post("/v1/emails", mail({ attachments }))
  const email: string = sent.body.id
  const record = (await project.get(`/v1/emails/${email}`)).body.data
  const waiting = (await project.post("/v1/emails", mail())).body.id
  const later = mail({ scheduled_at: secondsFromNow(3600) })
  const scheduled = (await project.post("/v1/emails", later)).body.id
  const verified = await addDomain(project)
  const change = { status: "verified" } as const
  await service.store.tx((tx) => tx.update(domains).set(change).where(eq(domains.id, verified.id)))
  const key = await project.post("/v1/api-keys", { name: "k", scopes: ["email:send"] })
  const suppressed = await project.post("/v1/suppressions", { email: "former@example.test" })
  const template = await project.post("/v1/templates", { name: "order", html: "<p>Dong</p>" })
  const topic = await project.post("/v1/topics", { name: "News" })
  return {
    email,
    waiting,
    scheduled,
    domain: (await addDomain(project)).id,
    verified: verified.id,
    webhook: (await endpoint(project)).id,
    key: key.body.data.id,
    suppression: suppressed.body.data.id,
    template: template.body.data.id,
    topic: topic.body.data.key,
    attachment: record.attachments[0].id,
  }
}

interface Told {
  name?: string
  message?: string
  statusCode?: number | null
  error?: { code: string; message: string }
}

/** `works`, or status and code of the refusal. */
async function answerOf(method: string, given: Things): Promise<string> {
  status = undefined
  const { error } = (await callMethod(resend, method, given)) as { error: Told | null }
  if (error === null) return "works"
  if (status === undefined) return `not sent: ${error.name}`
  if (!error.error) return `${status}, which the client cannot read`
  // Clear: a code to branch on, and a sentence that says what is wrong.
  expect(error.error.message.length).toBeGreaterThan(10)
  if (error.name !== undefined) {
    const { code: name, message } = error.error
    expect(error).toMatchObject({ name, message, statusCode: status })
  }
  return `${status} ${error.error.code}`
}

let answers: Map<string, string>

beforeAll(async () => {
  answers = new Map()
  const given = await things()
  const inOrder = methods.toSorted((one, other) => endsOf(one) - endsOf(other))
  for (const method of inOrder) answers.set(method, await answerOf(method, given))
})

/** What ends a thing comes last. */
const endsOf = (method: string) => Number(/\.(remove|cancel)$/.test(method))

test("the client has many methods, and the table has each of them once", () => {
  expect(methods.length).toBeGreaterThan(140)
  expect([...documented.keys()].sort()).toEqual([...methods, "webhooks.verify"].sort())
})

describe("what a method answers stands in the table", () => {
  test.each(methods)("%s", (method) => {
    expect([method, documented.get(method)]).toEqual([method, answers.get(method)])
  })
})
