import { destinationOf } from "../../../core/destination"
import { type Escape, type Fill, fillable, type TextValues } from "./placeholders"

/** How a gateway is asked, as the credentials say it. */
export interface RequestTemplate {
  url: string
  method: "GET" | "POST" | "PUT"
  headers?: Record<string, string>
  body?: string
}

/** A request template, read once. */
export interface GatewayRequest {
  method: RequestTemplate["method"]
  url: Fill
  headers(values: TextValues): Record<string, string>
  body: Fill | undefined
}

/** What is wrong with a request template. */
export class TemplateFault extends Error {
  readonly field: keyof RequestTemplate

  constructor(field: keyof RequestTemplate, message: string) {
    super(message)
    this.field = field
  }
}

/** Reads a request template. Throws TemplateFault. */
export function gatewayRequest({
  url,
  method,
  headers = {},
  body,
}: RequestTemplate): GatewayRequest {
  if (!ORIGIN.test(url)) throw new TemplateFault("url", WHOLE_ORIGIN)
  if (method === "GET" && body !== undefined) throw new TemplateFault("body", NO_BODY)
  const type = typeOf(headers, body)
  const named = Object.entries(headers).map(([name, value]): [string, Fill] => {
    if (REFUSED.test(name)) throw new TemplateFault("headers", `Belfry itself sets ${name}.`)
    return [name, within("headers", () => fillable(value, inHeader, inHeader))]
  })
  return {
    method,
    url: within("url", () => fillable(url, encoded)),
    headers: (values) => ({
      ...(type !== undefined && { "Content-Type": type }),
      ...Object.fromEntries(named.map(([name, fill]) => [name, fill(values)])),
    }),
    body: body === undefined ? undefined : within("body", () => fillable(body, escapeFor(type))),
  }
}

/** Tries a request template with values of every kind. Throws TemplateFault. */
export function tryOut(template: RequestTemplate): void {
  const { url, headers, body } = gatewayRequest(template)
  for (const values of [WITH_ALL, WITH_LEAST]) {
    within("url", () => destinationOf(url(values)))
    const type = headers(values)["Content-Type"] ?? ""
    if (body && JSON_TYPE.test(type)) requireJson(body(values))
  }
}

/** Where the gateway is: a value cannot change that. Throws NetError. */
export const placeOf = ({ url }: RequestTemplate) => destinationOf(ORIGIN.exec(url)?.[0] ?? url)

/** Scheme, host and port, before the first placeholder. */
const ORIGIN = /^https?:\/\/[^/?#\\{}\s@]+(?=[/?#]|$)/i
const WHOLE_ORIGIN =
  "The URL must begin with http:// or https:// and the whole host, without a placeholder and without a password."
const NO_BODY = "A request with the method GET has no body. Put the values into the url."

/** Those that frame the request (RFC 9110 and 9112), and those that say how the answer must look. */
const REFUSED =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|proxy-.*|accept-encoding)$/i

const JSON_TYPE = /[/+]json\b/i
const FORM_TYPE = /^application\/x-www-form-urlencoded\b/i
const XML_TYPE = /[/+]xml\b/i

function typeOf(headers: Record<string, string>, body: string | undefined): string | undefined {
  const given = Object.keys(headers).find((name) => /^content-type$/i.test(name))
  if (given !== undefined) return headers[given]
  if (body === undefined) return undefined
  // A bracket that begins no placeholder.
  return /^\s*(\[|\{(?!\{))/.test(body) ? "application/json" : "application/x-www-form-urlencoded"
}

function escapeFor(type = ""): Escape {
  if (JSON_TYPE.test(type)) return (value) => JSON.stringify(value).slice(1, -1)
  if (FORM_TYPE.test(type)) return encoded
  if (XML_TYPE.test(type))
    return (value) => value.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
  return (value) => value
}

const encoded: Escape = (value) => encodeURIComponent(value.toWellFormed())

/** A header holds visible ASCII: everything else is percent-encoded, line breaks with it. */
const inHeader: Escape = (value) =>
  value.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent)

/** Runs the work; its error is one of this field. */
function within<Made>(field: keyof RequestTemplate, work: () => Made): Made {
  try {
    return work()
  } catch (error) {
    throw new TemplateFault(field, (error as Error).message)
  }
}

function requireJson(body: string): void {
  try {
    JSON.parse(body)
  } catch {
    throw new TemplateFault("body", NO_JSON)
  }
}

const NO_JSON = 'The body is no JSON once the values are in it. Put quotes around each: "{{text}}".'

const WITH_LEAST: TextValues = {
  id: "1",
  to: "+1",
  from: "",
  text: "a",
  callback_url: "",
  ucs2: "",
}
const WITH_ALL: TextValues = {
  id: "019a0000-0000-7000-8000-000000000001",
  to: "+4366012345678",
  from: "Belfry",
  text: 'two\nlines, "quotes"',
  callback_url: "https://belfry.example.com/v1/callbacks?id=1",
  ucs2: "true",
}
