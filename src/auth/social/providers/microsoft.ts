import { openIdAdapter } from "./openid-connect"

const HOST = "https://login.microsoftonline.com"
const TENANT = "{tenantid}"
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Accounts of every tenant. A token names the issuer of its tenant `tid`, and a key may be of one tenant alone. Anybody
 * with a tenant writes what they like into `email`, so it counts only with `xms_edov`: its domain's owner was verified.
 */
export const microsoft = openIdAdapter({
  base: () => `${HOST}/common/v2.0`,
  issuer: `${HOST}/${TENANT}/v2.0`,
  scopes: ["openid", "email", "profile"],
  issuersOf({ issuer }, { tid }, key) {
    if (!issuer.includes(TENANT)) return [issuer]
    if (typeof tid !== "string" || !GUID.test(tid)) return []
    const own = issuer.replace(TENANT, tid)
    const of_key = key?.issuer?.replace(TENANT, tid) ?? own
    return of_key === own ? [own] : []
  },
  isVerified: ({ xms_edov }) => [true, 1, "1", "true"].some((yes) => yes === xms_edov),
})
