import {
  type AnswerOf,
  type ApiRequest,
  type OperationInput,
  type OperationName,
  request,
  type Transport,
} from "../client/client"
import { withQuery } from "./curl"
import { credential, renewCredential, sessionSignal } from "./page-session"
import { RequestError, reach, refusalOf } from "./requests"

/**
 * Sends one request of the API as the person, or the key, that is signed in here. Throws RequestError.
 * A token that is over is renewed once.
 */
export const call = <Name extends OperationName>(
  name: Name,
  ...input: OperationInput<Name>
): Promise<AnswerOf<Name>> => request(transport, name, ...input)

const transport: Transport = async (ask) => {
  const first = await sent(ask)
  if (first.status === 401 && (await renewCredential())) return answerOf(await sent(ask), ask)
  return answerOf(first, ask)
}

async function sent(request: ApiRequest): Promise<Response> {
  const { method, body, headers, accept } = request
  const own = await credential()
  // Without a credential the answer is known, and a page that is about to close asks no more.
  if (Object.keys(own).length === 0) throw new RequestError(401, "unauthorized", SIGNED_OUT)
  const has_body = body !== undefined
  return reach(withQuery(request), {
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
