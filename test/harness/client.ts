import type { Elysia } from "elysia"

type HeaderFields = Record<string, string>

export interface Ask {
  /** Sent as JSON; a text or bytes go as they are. */
  body?: unknown
  headers?: HeaderFields
}

/** Speaks JSON to an app in this process. A key in `headers` replaces the client's own. */
export function client(app: Pick<Elysia, "handle">, key: string | undefined) {
  async function call(method: string, path: string, { body, headers = {} }: Ask = {}) {
    const raw = typeof body === "string" || body instanceof Uint8Array
    const payload = body === undefined || raw ? body : JSON.stringify(body)
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: {
        ...(key !== undefined && { "x-api-key": key }),
        ...(payload !== undefined && {
          "content-type": "application/json",
          "content-length": String(Buffer.byteLength(payload as string)),
        }),
        ...headers,
      },
      ...(payload !== undefined && { body: payload as string }),
    })
    return read(await app.handle(request))
  }
  return {
    call,
    get: (path: string, headers?: HeaderFields) => call("GET", path, headers ? { headers } : {}),
    post: (path: string, body?: unknown, headers?: HeaderFields) =>
      call("POST", path, { ...(body !== undefined && { body }), ...(headers && { headers }) }),
  }
}

export type Client = ReturnType<typeof client>

/** Calls with these headers; those given with a call are added. */
export function callingWith(app: Pick<Elysia, "handle">, headers: HeaderFields) {
  const plain = client(app, undefined)
  const call: typeof plain.call = (method, path, ask = {}) =>
    plain.call(method, path, { ...ask, headers: { ...headers, ...ask.headers } })
  const withBody =
    (method: string) =>
    (path: string, body?: unknown, more = {}) =>
      call(method, path, { ...(body !== undefined && { body }), headers: more })
  return {
    call,
    get: (path: string, more = {}) => call("GET", path, { headers: more }),
    post: withBody("POST"),
    patch: withBody("PATCH"),
    remove: withBody("DELETE"),
  }
}

export type Reply = Awaited<ReturnType<typeof read>>

/** `body` is the parsed JSON; null where there is none. */
async function read(response: Response) {
  const bytes = new Uint8Array(await response.arrayBuffer())
  const text = new TextDecoder().decode(bytes)
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false
  const { status, headers } = response
  return { status, headers, bytes, text, body: isJson && text ? JSON.parse(text) : null }
}

/** Status and code of a refusal, the two things a client may branch on. */
export const refusal = ({ status, body }: Reply) => [status, body?.error?.code]

/** The paths of a validation error, or the field of a single problem with a code of its own. */
export const complaints = ({ body }: Reply): string[] => {
  const { fields, field } = body.error.details
  return fields ? fields.map((one: { path: string }) => one.path) : [field]
}
