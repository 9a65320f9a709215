import { type KeyObject, sign } from "node:crypto"
import { Type as t } from "@sinclair/typebox"
import { Elysia } from "elysia"
import { newId } from "../../src/core/ids"
import { answerOnce } from "../../src/http/idempotency"
import { mountRoutes } from "../../src/http/request-handler"
import { type AnyRoute, type Call, route } from "../../src/http/route"
import type { Store } from "../../src/store/store"
import type { TestProject, TestService } from "../harness/service"
import { makeSubscribers } from "../topics/made-subscribers"

/** Where a subscriber reads in these tests, until the inbox itself has such routes. */
export const INBOX = "/v1/test-inbox"
/** Keys may ask here, too. */
export const SHARED = "/v1/test-shared"
/** Keys alone. */
export const CLOSED = "/v1/test-closed"
/** Every key, whatever its scopes. */
export const UNSCOPED = "/v1/test-unscoped"
/** Every person that signed in. */
export const PEOPLE = "/v1/test-people"

/** Anybody, and subscribers, from the pages of every origin. */
export const OPEN = "/v1/test-open"

const base = { status: [200] as [number], summary: "For tests" }

const whose = ({ caller, body }: Call<unknown>) => ({
  kind: caller.kind,
  subscriber_id: caller.subscriber_id,
  project_id: caller.project_id,
  body,
})

const rows = (store: Store): AnyRoute[] => [
  route({
    ...base,
    method: "GET",
    path: INBOX,
    callers: ["subscriber"],
    scope: "-",
    query: t.Object({ much: t.Optional(t.Integer({ maximum: 3 })) }),
    response: t.Unknown(),
    handle: (call) => ({ data: whose(call) }),
  }),
  route({
    ...base,
    method: "POST",
    path: INBOX,
    callers: ["subscriber"],
    scope: "-",
    body: t.Object({}),
    idempotent: true,
    response: t.Unknown(),
    handle: (call) => answerOnce(store, call.claim, async () => whose(call)),
  }),
  route({
    ...base,
    method: "GET",
    path: SHARED,
    callers: ["key", "console", "subscriber"],
    scope: "inbox:read",
    response: t.Unknown(),
    handle: (call) => ({ data: whose(call) }),
  }),
  route({
    ...base,
    method: "DELETE",
    path: SHARED,
    callers: ["key", "console"],
    scope: "inbox:send",
    response: t.Unknown(),
    handle: (call) => ({ data: whose(call) }),
  }),
  route({
    ...base,
    method: "GET",
    path: OPEN,
    callers: ["app", "subscriber", "none"],
    scope: "-",
    any_origin: true,
    response: t.Unknown(),
    handle: (call) => ({ data: whose(call) }),
  }),
  route({
    ...base,
    method: "GET",
    path: CLOSED,
    callers: ["key", "console"],
    scope: "inbox:read",
    response: t.Unknown(),
    handle: (call) => ({ data: whose(call) }),
  }),
  ...([[UNSCOPED, ["key", "console"]] as const, [PEOPLE, ["console"]] as const] as const).map(
    ([path, callers]) =>
      route({
        ...base,
        method: "GET",
        path,
        callers: [...callers],
        scope: "-",
        response: t.Unknown(),
        handle: (call) => ({ data: whose(call) }),
      }),
  ),
]

/** Routes of every kind of caller that a subscriber's token meets, behind the guard of the service. */
export function subscriberApp({ parts }: TestService): Elysia {
  const app = new Elysia({ normalize: false, strictPath: true })
  mountRoutes(app, rows(parts.store), parts)
  return app
}

/** A subscriber of the project. Returns its id. */
export async function addSubscriber(
  service: Pick<TestService, "store">,
  project: Pick<TestProject, "project_id">,
  external_id = newId(),
): Promise<string> {
  const [id = ""] = await makeSubscribers(service, project, [{ external_id }])
  return id
}

/** The token of a subscriber, as the project's own server gets it. */
export async function tokenOf(
  project: Pick<TestProject, "post">,
  subscriber_id: string,
  ttl_seconds?: number,
): Promise<string> {
  const wanted = { subscriber_id, ...(ttl_seconds && { ttl_seconds }) }
  const { body } = await project.post("/v1/subscriber-inbox/token", wanted)
  return body.data.token
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export const encode = (part: object | string) =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url")

/** A token that this key signed, whatever it says. */
export function signedWith(key: KeyObject, header: object, claims: object): string {
  const head = `${encode(header)}.${encode(claims)}`
  return `${head}.${sign(null, Buffer.from(head), key).toString("base64url")}`
}
