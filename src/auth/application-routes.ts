import { fail } from "../core/errors"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { listPage, pageQuery } from "../http/page"
import { type AnyRoute, type CallerKind, route } from "../http/route"
import { type Caller, confinedTo } from "../identity/caller"
import * as keys from "./application-keys"
import * as schemas from "./application-schemas"
import * as applications from "./applications"
import type { AuthParts } from "./auth-parts"
import { authRow, idIn } from "./auth-rows"

const ALL = "/v1/auth/applications"
const ONE = `${ALL}/{application_id}` as const
const KEYS = `${ONE}/keys` as const

const READ = "auth:read"
const WRITE = "auth:write"

/** The callers that administer applications. The secret of one reaches that one alone. */
const ADMINISTRATORS: CallerKind[] = ["key", "console"]

export const applicationRoutes = (parts: AuthParts): AnyRoute[] => [
  createRoute(parts),
  ...readingRoutes(parts),
  ...changingRoutes(parts),
  ...keyRoutes(parts),
]

const createRoute = ({ store, secrets }: AuthParts): AnyRoute =>
  route({
    ...authRow("POST", ALL, ADMINISTRATORS, WRITE, 201),
    summary: "Make an application",
    description:
      "It gets the environments `live` and `test`, with a public key each. Only this answer shows `secret_key`, which is for servers. Without `slug` it gets one that is made of the name.",
    body: schemas.NewApplication,
    example: { name: "Shop", redirect_urls: ["https://shop.example.com/signed-in"] },
    response: schemas.NewApplicationRecord,
    errors: ["conflict", "invalid_url"],
    idempotent: true,
    sealed: true,
    handle: ({ caller, body, claim }) => {
      refuseConfined(caller)
      return answerOnce(store, claim, (tx) => applications.create(tx, secrets, caller, body))
    },
  })

function refuseConfined(caller: Caller): void {
  if (confinedTo(caller) === undefined) return
  fail("forbidden", "The secret of an application makes no other one. Use an API key.", {
    required_scope: WRITE,
  })
}

const readingRoutes = ({ store, cursors }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, ADMINISTRATORS, READ),
    summary: "List applications, newest first",
    description: "The secret of an application lists that one.",
    query: pageQuery({}),
    response: schemas.Application,
    handle: (call) => {
      const rows = applications.list(store.read, call.project_id, confinedTo(call.caller))
      return listPage(call, cursors, rows)
    },
  }),
  route({
    ...authRow("GET", `${ALL}/self`, ["app"], "-"),
    any_environment: true,
    summary: "Show what a public key is for",
    description: "A legacy key has no environment.",
    response: schemas.OwnApplication,
    handle: async ({ caller: { project_id, application } }) => {
      const { id, name, slug } = await applications.find(
        store.read,
        project_id,
        application?.id ?? "",
      )
      const environment = application?.environment ?? null
      const key_type = environment ? ("environment" as const) : ("legacy" as const)
      return { data: { id, name, slug, environment, key_type } }
    },
  }),
  route({
    ...authRow("GET", ONE, ADMINISTRATORS, READ),
    summary: "Show one application",
    description: "`environments` says how many users each has.",
    response: schemas.Application,
    handle: async (call) => {
      const row = await applications.find(store.read, call.project_id, idIn(call))
      return { data: await applications.shown(store.read, row) }
    },
  }),
]

const changingRoutes = ({ store }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("PATCH", ONE, ADMINISTRATORS, WRITE),
    summary: "Change an application",
    description: "Fields that are absent stay as they are. Null takes the logo away.",
    body: schemas.ApplicationPatch,
    example: { name: "Shop", session_duration_minutes: 30 },
    response: schemas.Application,
    errors: ["conflict", "invalid_url"],
    handle: (call) =>
      store.tx(async (tx) => ({
        data: await applications.change(tx, call.caller, idIn(call), call.body),
      })),
  }),
  route({
    ...authRow("DELETE", ONE, ["console"], "role:project_admin"),
    summary: "Delete an application",
    description:
      "Needs its slug in `confirm`. Nothing answers for it from then on. Its users, organizations, keys and sessions are deleted in the background. It cannot be restored.",
    body: schemas.Confirmation,
    example: { confirm: "shop" },
    response: Deleted,
    handle: async ({ caller, params, body }) => {
      await store.tx((tx) => applications.remove(tx, caller, params.application_id, body.confirm))
      return deleted(params.application_id)
    },
  }),
  route({
    ...authRow("POST", `${ONE}/rotate-secret`, ADMINISTRATORS, WRITE),
    summary: "Replace the secret of an application",
    description:
      "The old secret works for `overlap_hours` more hours. A secret before that one works no more.",
    body: schemas.SecretRotation,
    example: { overlap_hours: 24 },
    response: schemas.RotatedSecret,
    idempotent: true,
    sealed: true,
    handle: (call) => {
      const id = idIn(call)
      const { overlap_hours = schemas.DEFAULT_OVERLAP_HOURS } = call.body
      return answerOnce(store, call.claim, (tx) =>
        applications.rotateSecret(tx, call.caller, id, overlap_hours),
      )
    },
  }),
]

const keyRoutes = ({ store }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", KEYS, ADMINISTRATORS, READ),
    summary: "List the public keys of an application, newest first",
    description: "They are no secrets. Null in `environment` is the legacy key.",
    response: schemas.ApplicationKeys,
    handle: async (call) => {
      const { id, project_id } = await applications.find(store.read, call.project_id, idIn(call))
      const rows = await keys.of(store.read, project_id, id)
      return { data: rows.map(keys.toResponse) }
    },
  }),
  route({
    ...authRow("POST", KEYS, ADMINISTRATORS, WRITE, 201),
    summary: "Make a public key",
    description:
      "A key says for which application and environment a request is. Everybody may see it. With `legacy: true` it names no environment.",
    body: schemas.NewApplicationKey,
    example: { environment: "live", name: "Website" },
    response: schemas.ApplicationKey,
    errors: ["conflict"],
    idempotent: true,
    handle: (call) => {
      const id = idIn(call)
      return answerOnce(store, call.claim, async (tx) => {
        await applications.forUpdate(tx, call.project_id, id)
        return keys.toResponse(await keys.addKey(tx, call.caller, id, call.body))
      })
    },
  }),
  route({
    ...authRow("DELETE", `${KEYS}/{key_id}`, ADMINISTRATORS, WRITE),
    summary: "Delete a public key",
    description:
      "It is refused from the next request on. The last key of an environment needs `force=true`.",
    query: schemas.keyRemoval,
    response: Deleted,
    errors: ["conflict"],
    handle: async (call) => {
      const { key_id: id } = call.params
      const { force = false } = call.query
      const application_id = idIn(call)
      await store.tx(async (tx) => {
        await applications.forUpdate(tx, call.project_id, application_id)
        await keys.removeKey(tx, call.caller, { application_id, id, force })
      })
      return deleted(id)
    },
  }),
]
