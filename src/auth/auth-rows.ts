import { Type as t } from "@sinclair/typebox"
import { anonymousRow, type Call, type CallerKind, type Method, SHORT_BYTES } from "../http/route"
import { confinedTo } from "../identity/caller"
import { id } from "../lib/record-fields"
import { KEPT_SECONDS } from "../signing-keys/signing-keys"
import type { Reader } from "../store/store"
import { noApplication } from "./applications"
import { environmentOf } from "./environments"
import { ENVIRONMENT_NAMES } from "./tables"

/**
 * What most rows of this area have in common: short bodies. The scope is that of keys and people; an application and
 * its users need none. Several statuses begin with the usual one.
 */
export const authRow = <const Path extends string>(
  method: Method,
  path: Path,
  callers: CallerKind[],
  scope: string,
  ...[status = 200, ...others]: number[]
) => ({
  ...{ method, path, callers, scope, limit: SHORT_BYTES },
  status: [status, ...others] as [number, ...number[]],
})

/** Of what everybody may ask often: nothing in it is worth guessing at. */
export const anybodysRow = <const Path extends string>(method: Method, path: Path) => {
  const { per_minute: _, ...row } = anonymousRow(method, path)
  return row
}

/** Clients and proxies may keep such an answer for a while. */
export const CACHEABLE = { "cache-control": `public, max-age=${KEPT_SECONDS}` }

const application_id = id(
  "The application. Without it the project's only one. A credential of an application says it already.",
)

/** Fields of a body or a query by which a key says what it is for. `environmentOf` takes them as they are. */
export const targetFields = {
  application_id: t.Optional(application_id),
  environment: t.Optional(
    t.Union(
      ENVIRONMENT_NAMES.map((name) => t.Literal(name)),
      { description: "Without it the header `X-Environment` counts, else `live`." },
    ),
  ),
}

type OfApplication = Call<unknown, unknown, { application_id: string }>

/** The id in the path, if the caller reaches that application. Throws 404. */
export function idIn({ caller, params: { application_id } }: OfApplication): string {
  const own = confinedTo(caller)
  return own === undefined || own === application_id ? application_id : noApplication()
}

/** An environment of that application. Throws 404, also where a public key that came along is of another one. */
export async function environmentIn(db: Reader, call: OfApplication, environment?: string) {
  const application_id = idIn(call)
  const found = await environmentOf(db, call, { application_id, environment })
  return found.application.id === application_id ? found : noApplication()
}
