import type { Client } from "./client"
import { exits, Failure } from "./errors"

/** An operation, as the OpenAPI document of a server describes it. */
export interface ReferenceOperation {
  method: string
  path: string
  operationId: string
  summary: string
  description?: string
  "x-callers": string[]
  /** Several scopes have `|` between them; `-` needs none. */
  "x-required-scope": string
  /** References to what many operations have are among them, without a name. */
  parameters: { name: string; required: boolean; description: string; schema: object }[]
  requestBody?: { required: boolean; content: Record<string, { schema: object }> }
}

/** Every operation of the server, from its OpenAPI document. No credential is needed. */
export async function apiReference(client: Client): Promise<ReferenceOperation[]> {
  const { status, body } = await client.plain("/v1/openapi.json")
  const { paths } = body as { paths?: Record<string, Record<string, ReferenceOperation>> }
  if (status !== 200 || !paths) {
    throw new Failure(exits.failed, "no_reference", `/v1/openapi.json answered ${status}.`)
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return { ...operation, method: method.toUpperCase(), path }
    }),
  )
}
