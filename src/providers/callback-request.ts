import { JsonScan, parseScanned } from "../http/json"
import type { CallbackRequest } from "./provider"

export interface ArrivedCallback {
  method: CallbackRequest["method"]
  request: Request
  body: Uint8Array
}

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i
/** Some providers call their JSON plain text, or leave its type out. */
const IS_JSON = /^\s*[{[]/

/**
 * A callback under the address that the provider was given, wherever a proxy took it, with the fields of
 * its query and of its body. Throws 400 `invalid_json` for a body that is neither JSON nor a form.
 */
export function callbackRequest(
  address: string,
  { method, request: { url, headers }, body }: ArrivedCallback,
): CallbackRequest {
  const query = /\?[^#]*/.exec(url)?.[0] ?? ""
  const fields = { ...formFields(query), ...bodyFields(body, headers.get("content-type") ?? "") }
  return { method, url: `${address}${query}`, headers, body, fields }
}

function bodyFields(body: Uint8Array, type: string): object {
  if (body.length === 0) return {}
  const text = new TextDecoder().decode(body)
  if (FORM.test(type) || (type === "" && !IS_JSON.test(text))) return formFields(text)
  new JsonScan().feed(body)
  const value = parseScanned([body])
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}
}

const formFields = (text: string) => Object.fromEntries(new URLSearchParams(text))
