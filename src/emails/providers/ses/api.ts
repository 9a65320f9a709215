import { readFileSync } from "node:fs"
import { AwsV4Signer } from "aws4fetch"
import type { Settings } from "../../../core/config"
import { type NetAnswer, request } from "../../../core/net"
import { now } from "../../../core/time"
import { objectIn } from "../../../lib/text"
import type { IdentityStatus, SenderIdentity } from "../../../providers/provider"
import { oncePer } from "../../../store/cached"

const TIMEOUT_MS = 20_000
const ANSWER_BYTES = 256 * 1024

export type SesAccess = {
  region: string
  access_key_id: string
  secret_access_key: string
  configuration_set?: string
}

/** How the SES API is reached, by the operator's settings. */
export interface SesEndpoint {
  /** Instead of that of the region: a VPC endpoint, or a test's. */
  url: string | null
  /** PEM of the authority to trust there instead of the well-known ones. */
  ca: string | undefined
}

/** By the settings; the file is read once. Throws where it cannot be. */
export const sesEndpoint = oncePer((settings: Settings): SesEndpoint => {
  const file = settings["providers.ses.ca"]
  const ca = file === null ? undefined : readFileSync(file, "utf8")
  return { url: settings["providers.ses.endpoint"], ca }
})

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

interface SesCall {
  method: "GET" | "POST" | "DELETE"
  path: string
  body?: unknown
}

export const hostOf = (access: SesAccess, endpoint: SesEndpoint): string =>
  new URL(urlOf(access, endpoint)).host

const urlOf = ({ region }: SesAccess, { url }: SesEndpoint) =>
  url ?? `https://email.${region}.amazonaws.com`

/** Signed (AWS SigV4). Rejects with SesRefusal for a no, and NetError without an answer. */
export async function callSes(
  access: SesAccess,
  endpoint: SesEndpoint,
  call: SesCall,
): Promise<unknown> {
  const base = urlOf(access, endpoint)
  const signed = await sign(access, `${base}${call.path}`, call)
  const answer = await request({
    url: signed.url,
    method: call.method,
    headers: signed.headers,
    ...(signed.body !== undefined && { body: signed.body }),
    timeout_ms: TIMEOUT_MS,
    capture_bytes: ANSWER_BYTES,
    // The endpoint is the operator's word, so it may be a private one.
    allow_private: endpoint.url === null ? [] : [new URL(base).hostname],
    ...(endpoint.ca !== undefined && { ca: endpoint.ca }),
  })
  const said = objectIn(Buffer.from(answer.body).toString("utf8")) ?? {}
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

/** The name stands in a header or in the body, with a namespace before or an address behind it. */
function refusal({ status, headers }: NetAnswer, said: Record<string, unknown>): SesRefusal {
  const named = headers.get("x-amzn-errortype") ?? said.__type ?? said.code ?? ""
  const code = String(named).split(":")[0]?.split("#").at(-1) || `Http${status}`
  const message = said.message ?? said.Message ?? "no reason was given"
  return new SesRefusal(code, status, String(message))
}

/**
 * The identity of a domain at SES; made there if it has none. Rejects with SesRefusal or NetError
 * where it cannot be asked: then nothing is known, and nothing was lost.
 */
export async function sesIdentity(
  access: SesAccess,
  endpoint: SesEndpoint,
  domain: string,
): Promise<SenderIdentity> {
  const all = "/v2/email/identities"
  const path = `${all}/${encodeURIComponent(domain)}`
  const creation = { method: "POST", path: all, body: { EmailIdentity: domain } } as const
  const known = await callForKnown(access, endpoint, { method: "GET", path })
  return identityFrom(known ?? (await callSes(access, endpoint, creation)))
}

/** Undefined where SES does not have what is named. */
async function callForKnown(access: SesAccess, endpoint: SesEndpoint, call: SesCall) {
  try {
    return await callSes(access, endpoint, call)
  } catch (error) {
    if (error instanceof SesRefusal && error.code === "NotFoundException") return undefined
    throw error
  }
}

/** Of the SES account. An address that is not on its list is fine. Rejects as `callSes`. */
export async function sesUnsuppress(
  access: SesAccess,
  endpoint: SesEndpoint,
  address: string,
): Promise<void> {
  const path = `/v2/email/suppression/addresses/${encodeURIComponent(address)}`
  await callForKnown(access, endpoint, { method: "DELETE", path })
}

interface SesIdentity {
  VerifiedForSendingStatus?: boolean
  VerificationStatus?: string
  DkimAttributes?: {
    Status?: string
    Tokens?: string[]
    /** `EXTERNAL`: a key that its owner brought, of which `Tokens` is the selector. */
    SigningAttributesOrigin?: string
    /** Where the keys are; a zone for all where it is not named. */
    SigningHostedZone?: string
  }
}

function identityFrom(said: unknown): SenderIdentity {
  const { VerifiedForSendingStatus, VerificationStatus, DkimAttributes } = said as SesIdentity
  const status = VerifiedForSendingStatus === true ? "SUCCESS" : VerificationStatus
  return {
    provider_identity_status: statusOf(status),
    provider_dkim_status: statusOf(DkimAttributes?.Status),
    dkim_aliases: aliasesOf(DkimAttributes),
  }
}

const KEYS = "dkim.amazonses.com"

function aliasesOf(dkim: SesIdentity["DkimAttributes"]) {
  if (dkim?.SigningAttributesOrigin === "EXTERNAL") return []
  const zone = (dkim?.SigningHostedZone || KEYS).toLowerCase()
  const selectors = (dkim?.Tokens ?? []).map((token) => token.toLowerCase())
  return selectors.map((selector) => ({ selector, target: `${selector}.${zone}` }))
}

/** TEMPORARY_FAILURE and NOT_STARTED may still become a success. */
const statusOf = (status: string | undefined): IdentityStatus =>
  status === "SUCCESS" ? "success" : status === "FAILED" ? "failed" : "pending"
