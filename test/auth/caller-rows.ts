import { Type as t } from "@sinclair/typebox"
import { Elysia } from "elysia"
import { authRow, targetFields } from "../../src/auth/auth-rows"
import { environmentOf } from "../../src/auth/environments"
import { mountRoutes } from "../../src/http/request-handler"
import { type AnyRoute, type CallerKind, route } from "../../src/http/route"
import type { Reader } from "../../src/store/store"
import type { TestService } from "../harness/service"

/** For apps alone, for keys and apps, for users alone, and for everybody who may ask about users. */
export const FOR_APPS = "/v1/auth/test-apps"
export const FOR_SERVERS = "/v1/auth/test-servers"
export const FOR_USERS = "/v1/auth/test-users"
export const FOR_ALL = "/v1/auth/test-all"
/** For apps, also those with a legacy key. */
export const FOR_LEGACY = "/v1/auth/test-legacy"
/** Outside of the area, for every key. */
export const ELSEWHERE = "/v1/test-elsewhere"

const ROWS: [path: string, callers: CallerKind[], scope: string][] = [
  [FOR_APPS, ["app"], "-"],
  [FOR_SERVERS, ["app", "key"], "auth:write"],
  [FOR_USERS, ["user"], "-"],
  [FOR_ALL, ["user", "key", "console"], "auth:read"],
  [ELSEWHERE, ["key", "console"], "-"],
]

/** Rows that answer what they know of their caller, and which environment the request is for. */
export function callerRows({ parts }: TestService): Elysia {
  const app = new Elysia({ normalize: false, strictPath: true })
  const db = parts.store.read
  const rows = ROWS.map(([path, callers, scope]) =>
    answering(db, { ...authRow("POST", path, callers, scope) }),
  )
  const legacy = { ...authRow("POST", FOR_LEGACY, ["app"], "-"), any_environment: true as const }
  mountRoutes(app, [...rows, answering(db, legacy)], parts)
  return app
}

type Row = ReturnType<typeof authRow> & Pick<AnyRoute, "any_environment">

const answering = (db: Reader, row: Row) =>
  route({
    ...row,
    summary: "For tests",
    body: t.Object(targetFields),
    response: t.Unknown(),
    handle: async (call) => {
      const { kind, application, end_user, subscriber_id, scopes } = call.caller
      const is_named = application?.environment !== null || kind !== "app"
      const found = is_named ? await environmentOf(db, call, call.body) : undefined
      const environment = found && { id: found.application.id, name: found.name }
      return { data: { kind, application, end_user, subscriber_id, scopes, environment } }
    },
  })
