import { ApiError, type Problem } from "../core/errors"
import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { resendArea, resendForm } from "./resend-client"
import type { AnyRoute, Bare, Enveloped } from "./route"

export type HeaderFields = Record<string, string>

const JSON_TYPE = "application/json;charset=utf-8"

/** What the answer tells beside the handler's own. */
export interface Beside {
  /** Of the request: fields that are almost those of the route. */
  warnings?: Problem[]
  /** The part of the API that its client reads in the form of Resend. */
  area?: string | undefined
}

/** `{data, meta}` with the request id, or the finished response with our headers added. */
export function respond(
  answer: Enveloped | Bare | Response,
  status: number,
  id: string,
  headers: HeaderFields,
  { warnings = [], area }: Beside = {},
) {
  if (answer instanceof Response) return decorate(answer, id, headers)
  const all = { "content-type": JSON_TYPE, "x-request-id": id, ...headers }
  const init = { status: answer.status ?? status, headers: all }
  if ("bare" in answer) return new Response(JSON.stringify(answer.bare), init)
  const meta = { request_id: id, ...answer.meta, ...warned(warnings, answer.meta) }
  const { data } = answer
  const body =
    area === undefined || typeof data !== "object" || data === null
      ? { ...answer.top, data, meta }
      : Array.isArray(data)
        ? { ...answer.top, data: data.map((record) => resendForm(area, record)), meta }
        : { ...resendForm(area, { ...data }), ...answer.top, data, meta }
  if (answer.headers) Object.assign(all, answer.headers)
  return new Response(JSON.stringify(body), init)
}

/** Behind the warnings that the handler has of its own. */
function warned(list: Problem[], meta: { warnings?: object[] } = {}) {
  if (list.length === 0) return undefined
  const warnings = list.map(({ path, code, message }) => ({ code, message, field: path }))
  return { warnings: [...(meta.warnings ?? []), ...warnings] }
}

interface Refused extends Pick<Beside, "warnings"> {
  method?: string
  /** Of the request, without the query. */
  path?: string
  page?: AnyRoute["page"]
}

/** The only place where an exception becomes an answer. */
export function respondError(
  thrown: unknown,
  id: string,
  headers: HeaderFields,
  { method = "POST", path = "", page, warnings = [] }: Refused = {},
) {
  const error = asApiError(thrown, id, method)
  if (page) return decorate(page(error), id, { ...headers, ...error.headers })
  const { code, message, details } = error
  const body = {
    ...(resendArea(path) && { name: code, message, statusCode: error.status }),
    error: { code, message, details },
    meta: { request_id: id, docs: pageOf(code), ...warned(warnings) },
  }
  const all = { "content-type": JSON_TYPE, "x-request-id": id, ...headers, ...error.headers }
  return new Response(JSON.stringify(body), { status: error.status, headers: all })
}

/** The path of a code's page; `pages/small-page.ts` makes it. */
export const pageOf = (code: string): string => `/docs/errors/${code}`

/** What is told of an error; what we did not expect goes to the log, with the request's id. */
export function asApiError(thrown: unknown, request_id: string, method: string): ApiError {
  if (thrown instanceof ApiError) return thrown
  const trouble = faultOf(thrown)
  // The storage told of it once, with what to do. Each read of a bad page would say it again.
  if (trouble === "damaged") return unavailable(DAMAGED, "damaged", 60)
  log.error(FAILURES[trouble ?? "none"] ?? "the storage refused a request", {
    request_id,
    error: thrown,
  })
  if (trouble === "descriptors") return unavailable(TOO_MANY_FILES, "descriptors")
  if (!trouble) return new ApiError("internal_error", INTERNAL)
  return unavailable(method === "GET" || method === "HEAD" ? UNREADABLE : UNWRITABLE, "storage")
}

const FAILURES: Record<string, string> = {
  none: "a request failed",
  descriptors: "the process has as many files open as the system allows; raise the limit nofile",
}

const TOO_MANY_FILES =
  "The server has too many files open at the moment. Nothing was accepted. Try again in a few seconds."

const INTERNAL =
  "The server failed at this request. Tell its operator the request id, which is also in the log."

/** 503 with the seconds after which another try makes sense. */
export const unavailable = (message: string, reason: string, retry_after = 5) =>
  new ApiError("service_unavailable", message, { reason, retry_after })

const DAMAGED =
  "The database is damaged, so this request failed. The operator must repair the database."
const UNREADABLE = "The storage cannot be read at the moment. Try again in a few seconds."
const UNWRITABLE =
  "The storage cannot be written at the moment. Nothing was accepted. Try again in a few seconds."

function decorate(response: Response, id: string, headers: HeaderFields): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  response.headers.set("x-request-id", id)
  return response
}
