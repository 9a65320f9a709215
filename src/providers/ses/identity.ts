import type { Secrets } from "../../core/secrets"
import type { Reader } from "../../store/store"
import type { ConfigRow } from "../config-record"
import { openCredentials, type SesAccess } from "../credentials"
import { emailRouting } from "../routing"
import { type SesPlace, SesRefusal, ses } from "./api"

export type Standing = "pending" | "success" | "failed"

/** What SES thinks of a domain of ours. */
export interface Identity {
  provider_identity_status: Standing
  provider_dkim_status: Standing
  /** Its three CNAMEs: `<selector>._domainkey.<domain>` leads to `target`. None for keys of others. */
  dkim_aliases: { selector: string; target: string }[]
}

interface Around {
  read: Reader
  secrets: Secrets
  place: SesPlace
  /** The instance's own, where that delivers for projects without another. */
  own?: SesAccess | undefined
}

const accessOf = (secrets: Secrets, row: ConfigRow) =>
  row.provider === "ses" ? (openCredentials(secrets, row) as SesAccess) : undefined

/**
 * The identity of a domain at the provider that delivers for the project first; made there if it
 * has none. Undefined where that provider keeps no identities. Rejects with SesRefusal or NetError
 * where it cannot be asked: then nothing is known, and nothing was lost.
 */
export async function identityOf(
  { read, secrets, place, own }: Around,
  project_id: string,
  domain: string,
): Promise<Identity | undefined> {
  const [first] = await emailRouting(read, project_id)
  const access = first ? accessOf(secrets, first) : own
  if (!access) return undefined
  const path = `/v2/email/identities/${encodeURIComponent(domain)}`
  try {
    return identityFrom(await ses(access, place, { method: "GET", path }))
  } catch (error) {
    if (!(error instanceof SesRefusal) || error.code !== "NotFoundException") throw error
    const body = { EmailIdentity: domain }
    return identityFrom(
      await ses(access, place, { method: "POST", path: "/v2/email/identities", body }),
    )
  }
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

function identityFrom(said: unknown): Identity {
  const { VerifiedForSendingStatus, VerificationStatus, DkimAttributes } = said as SesIdentity
  const status = VerifiedForSendingStatus === true ? "SUCCESS" : VerificationStatus
  return {
    provider_identity_status: standingOf(status),
    provider_dkim_status: standingOf(DkimAttributes?.Status),
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
const standingOf = (status: string | undefined): Standing =>
  status === "SUCCESS" ? "success" : status === "FAILED" ? "failed" : "pending"
