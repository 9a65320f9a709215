import {
  type AnswerOf,
  type ApiRequest,
  type OperationInput,
  type OperationName,
  request,
  type Transport,
} from "../client/client"
import { credential, renewCredential, sessionSignal } from "./page-session"
import { reach } from "./reach"
import { RequestError, refusalOf } from "./request-error"

/**
 * Sends one request of the API as the person, or the key, that is signed in here. Throws RequestError.
 * A token that is over is renewed once.
 */
export async function call<Name extends OperationName>(
  name: Name,
  ...input: OperationInput<Name>
): Promise<AnswerOf<Name>> {
  return request(transport, name, ...input)
}

/** The transport of src/client in a browser. */
export const transport: Transport = async (ask) => {
  const first = await sent(ask)
  if (first.status === 401 && (await renewCredential())) return answerOf(await sent(ask), ask)
  return answerOf(first, ask)
}

async function sent({ method, path, query, body, headers, accept }: ApiRequest): Promise<Response> {
  const own = await credential()
  // Without a credential the answer is known, and a page that is about to close asks no more.
  if (Object.keys(own).length === 0) throw new RequestError(401, "unauthorized", SIGNED_OUT)
  const has_body = body !== undefined
  return reach(`${path}${searchOf(query)}`, {
    method,
    signal: sessionSignal(),
    headers: {
      accept,
      ...own,
      ...(has_body && { "content-type": "application/json" }),
      ...headers,
    },
    ...(has_body && { body: JSON.stringify(body) }),
  })
}

const SIGNED_OUT = "You are not signed in any more. Sign in again."

async function answerOf(answer: Response, { accept }: ApiRequest): Promise<unknown> {
  if (!answer.ok) throw refusalOf(answer.status, await answer.text())
  return accept === "application/json" ? answer.json() : new Uint8Array(await answer.arrayBuffer())
}

function searchOf(query: ApiRequest["query"]): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value))
  }
  return search.size === 0 ? "" : `?${search}`
}
