import type { Reader } from "../store/store"
import { trackingHost } from "./sending-domains"

/**
 * Where people outside reach this server by the mail of a domain, without a slash at the end; undefined where nobody
 * knows that: then mail has no links of ours, because they would lead nowhere.
 */
export type PublicAddress = (
  project_id: string,
  domain: string | null,
) => Promise<string | undefined>

/** `public_url`, else the host of tracked links of the domain, while its CNAME is verified. */
export const publicAddressOf =
  (db: Reader, public_url: () => string | undefined): PublicAddress =>
  async (project_id, domain) => {
    const url = public_url()
    if (url !== undefined || domain === null) return url
    const host = await trackingHost(db, project_id, domain)
    return host === null ? undefined : `https://${host}`
  }

/** For the log, `/readyz` and `doctor` of a server without `base_url`. */
export const NO_PUBLIC_ADDRESS =
  "base_url is not set, so mail has no links of this server: it is not tracked, and it has no unsubscribe pages. Set base_url to the public https URL of this server."
