import { resolver } from "../../src/core/dns"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import type { NameServers } from "../../src/domains/authoritative"
import type { DomainRow, KeyRow } from "../../src/domains/expected-records"
import { type MadeKey, makeKeys } from "../../src/domains/keys"
import type { Records } from "../harness/knot"
import { PLACE } from "../harness/service"

export const TOKEN = "0123456789abcdef0123456789abcdef"

let made: Promise<MadeKey> | undefined

/** An RSA key with a plus sign, which one of the mistakes loses. One of 300 keys has none. */
async function makeKey(): Promise<MadeKey> {
  for (;;) {
    const rsa = (await makeKeys()).find(({ algorithm }) => algorithm === "rsa")
    if (!rsa) throw new Error("no key was made")
    if (rsa.public_key.includes("+")) return rsa
  }
}

/** One RSA key for all: making them takes longer than all that is done with them. */
export async function testKey(): Promise<KeyRow> {
  made ??= makeKey()
  const rsa = await made
  return {
    id: newId(),
    project_id: newId(),
    domain_id: newId(),
    selector: "svc1",
    algorithm: "rsa",
    private_key: "",
    public_key: rsa.public_key,
    state: "active",
    seen_at: null,
    retire_at: null,
    created_at: now(),
  }
}

/** A domain as it is when it was just created. */
export const testDomain = (domain: string, own: Partial<DomainRow> = {}): DomainRow => ({
  id: newId(),
  account_id: newId(),
  project_id: newId(),
  domain,
  status: "pending",
  verification_token: TOKEN,
  receiving: false,
  tracking_subdomain: null,
  return_path: "bounce",
  records: {},
  provider_identity_status: "not_required",
  provider_dkim_status: "not_required",
  provider_dkim: null,
  warning: null,
  asked: null,
  missing_since: null,
  last_checked_at: null,
  next_check_at: null,
  window_began_at: now(),
  verified_at: null,
  failed_at: null,
  created_at: now(),
  updated_at: now(),
  ...own,
})

/** Where names are looked up when these servers speak for everything. */
export const netOf = (servers: string[], try_ms = 500): NameServers => ({
  dns: resolver({ servers, try_ms }),
  servers,
  try_ms,
})

/** The four records that are wanted, each of which may be replaced by others. */
export function rightRecords(key: { public_key: string }, own: Partial<Right> = {}): Records {
  const right: Right = {
    verification: [`_svc-verify TXT "svc-domain-verification=${TOKEN}"`],
    spf: [`bounce TXT "v=spf1 ${PLACE.mechanisms.join(" ")} ~all"`],
    dkim: [`svc1._domainkey TXT "v=DKIM1; k=rsa; p=${key.public_key}"`],
    dmarc: [`_dmarc TXT "v=DMARC1; p=none"`],
    more: [],
    ...own,
  }
  return Object.values(right).flat()
}

/** The texts of those four at acme.test, by their full names. */
export const rightTexts = (key: { public_key: string }): Record<string, string | undefined> => ({
  "_svc-verify.acme.test": `svc-domain-verification=${TOKEN}`,
  "bounce.acme.test": `v=spf1 ${PLACE.mechanisms.join(" ")} ~all`,
  "svc1._domainkey.acme.test": `v=DKIM1; k=rsa; p=${key.public_key}`,
  "_dmarc.acme.test": "v=DMARC1; p=none",
})

export interface Right {
  verification: Records
  spf: Records
  dkim: Records
  dmarc: Records
  more: Records
}
