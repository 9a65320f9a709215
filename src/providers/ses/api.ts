import { readFileSync } from "node:fs"
import { AwsV4Signer } from "aws4fetch"
import { type NetAnswer, request } from "../../core/net"
import { now } from "../../core/time"
import type { SesAccess } from "../credentials"

const TIMEOUT_MS = 20_000
const ANSWER_BYTES = 256 * 1024

/** How the SES API is reached, by the operator's settings. */
export interface SesPlace {
  /** Instead of that of the region: a VPC endpoint, or a test's. */
  endpoint: string | null
  /** PEM of the authority to trust there instead of the well-known ones. */
  ca: string | undefined
}

/** By the settings; the file is read at once. Throws where it cannot be. */
export const sesPlace = (settings: {
  "providers.ses.endpoint": string | null
  "providers.ses.ca": string | null
}): SesPlace => {
  const file = settings["providers.ses.ca"]
  return {
    endpoint: settings["providers.ses.endpoint"],
    ca: file === null ? undefined : readFileSync(file, "utf8"),
  }
}

/** SES said no. `code` is its exception's name without namespace. */
export class SesRefusal extends Error {
  override readonly name = "SesRefusal"
  readonly code: string
  readonly status: number

  constructor(code: string, status: number, message: string) {
    super(message)
    this.code = code
    this.status = status
  }
}

export interface SesCall {
  method: "GET" | "POST"
  path: string
  body?: unknown
}

export const hostOf = (access: SesAccess, { endpoint }: SesPlace): string =>
  new URL(endpointOf(access, endpoint)).host

const endpointOf = ({ region }: SesAccess, endpoint: string | null) =>
  endpoint ?? `https://email.${region}.amazonaws.com`

/**
 * One signed request (AWS Signature Version 4) of the SES API v2. Rejects with SesRefusal for a no,
 * and with NetError where there was no answer.
 */
export async function ses(access: SesAccess, place: SesPlace, call: SesCall): Promise<unknown> {
  const endpoint = endpointOf(access, place.endpoint)
  const signed = await sign(access, `${endpoint}${call.path}`, call)
  const answer = await request({
    url: signed.url,
    method: call.method,
    headers: signed.headers,
    ...(signed.body !== undefined && { body: signed.body }),
    timeout_ms: TIMEOUT_MS,
    capture_bytes: ANSWER_BYTES,
    // The endpoint is the operator's word, so it may be a private one.
    allow_private: place.endpoint === null ? [] : [new URL(endpoint).hostname],
    ...(place.ca !== undefined && { ca: place.ca }),
  })
  const said = parsed(answer)
  if (answer.status >= 200 && answer.status < 300) return said
  throw refusal(answer, said)
}

async function sign(access: SesAccess, url: string, { method, body: given }: SesCall) {
  const body = given === undefined ? undefined : JSON.stringify(given)
  const signer = new AwsV4Signer({
    method,
    url,
    ...(body !== undefined && { body, headers: { "content-type": "application/json" } }),
    accessKeyId: access.access_key_id,
    secretAccessKey: access.secret_access_key,
    region: access.region,
    service: "ses",
    datetime: now().replace(/[:-]|\.\d{3}/g, ""),
  })
  const { url: to, headers } = await signer.sign()
  return { url: to.toString(), headers: Object.fromEntries(headers), body }
}

function parsed({ body }: NetAnswer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString("utf8") || "{}")
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** The name stands in a header or in the body, with a namespace before or an address behind it. */
function refusal({ status, headers }: NetAnswer, said: Record<string, unknown>): SesRefusal {
  const named = headers.get("x-amzn-errortype") ?? said.__type ?? said.code ?? ""
  const code = String(named).split(":")[0]?.split("#").at(-1) || `Http${status}`
  const message = said.message ?? said.Message ?? "no reason was given"
  return new SesRefusal(code, status, String(message))
}
