import { Type as t } from "@sinclair/typebox"
import { aliasOf, notOffered, orNull } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { count, flag, id, maybe, rarely, text as sample, time, word } from "../lib/record-fields"
import { RECORD_PURPOSES } from "./tables"

const text = (description: string) => t.String({ description })

export const status = word(["verified", "pending", "failed"])

const domain = text("The domain, such as example.com, with at most 180 characters as A-labels.")

/** Of other services: of which server they are, or what this one decides elsewhere. */
const elsewhere = {
  region: notOffered(),
  tls: notOffered(),
  capabilities: notOffered(),
  custom_return_path: notOffered(),
  open_tracking: notOffered(),
  click_tracking: notOffered(),
}

export const NewDomain = t.Object({
  domain,
  name: aliasOf("domain", domain),
  receiving: t.Optional(t.Boolean({ default: false })),
  tracking_subdomain: t.Optional(
    orNull(text("Label below the domain for tracked links: `links` means links.example.com.")),
  ),
  return_path: t.Optional(t.String({ default: "bounce" })),
  dkim_selector: t.Optional(t.String({ default: "svc1" })),
  ...elsewhere,
})

export const DomainPatch = t.Object({
  receiving: t.Optional(t.Boolean()),
  tracking_subdomain: t.Optional(orNull(t.String())),
  return_path: t.Optional(t.String()),
  ...elsewhere,
})

export const Rotation = t.Object({
  selector: t.Optional(text("Selector of the new key. Without it, svc2, svc1 and so on.")),
})

export const domainQuery = pageQuery({
  status: t.Optional(status),
  domain: t.Optional(text("Show only domains whose name contains this text.")),
})

const ServerAnswer = t.Object(
  {
    server: sample("ns1.example.com"),
    answer: sample(
      "NOERROR",
      "DNS response code (`NOERROR`, `NXDOMAIN`, `SERVFAIL` …), or the reason why there was no answer.",
    ),
    values: t.Array(sample("v=spf1 include:spf.belfry.example.com ~all")),
    alias: rarely(sample("mail.example.net", "Target of the CNAME, if the name is an alias.")),
  },
  { title: "DnsServerAnswer" },
)

const Difference = t.Object(
  { at: count(12), expected: sample("v=DKIM1; k=rsa;"), found: sample("v=DKIM1;k=rsa;") },
  { description: "Position of the first wrong character, with both texts." },
)

const DnsRecord = t.Object(
  {
    purpose: word(RECORD_PURPOSES),
    type: word(["TXT", "MX", "CNAME"]),
    name: sample("_svc-verify", "The name without the zone, as DNS providers want it."),
    host: sample("_svc-verify.example.com", "The full name of the record."),
    value: sample("svc-domain-verification=7d403c3e9b5a3f1d2e4c5b6a8f0a1b2c"),
    priority: rarely(count(10)),
    ttl: count(3600),
    required: flag(true),
    verified: flag(true),
    status: word(["verified", "pending", "mismatch", "missing"]),
    found: t.Array(sample("svc-domain-verification=7d403c3e9b5a3f1d2e4c5b6a8f0a1b2c")),
    hint: rarely(sample("The record is missing. Add it at your DNS provider.")),
    mistake: rarely(sample("not_there", "Name of the mistake that the hint explains.")),
    difference: rarely(Difference),
    answers: t.Array(ServerAnswer, { description: "The answer of each name server." }),
  },
  { title: "DnsRecord" },
)

const provider = word(["not_required", "pending", "success", "failed"])
const totals = { records_total: count(4), records_verified: count(4) }

export const Domain = t.Object(
  {
    id: id(),
    project_id: id(),
    domain: sample("example.com"),
    status,
    verification_token: sample("7d403c3e9b5a3f1d2e4c5b6a8f0a1b2c"),
    dns_records: t.Array(DnsRecord),
    ...totals,
    provider_identity_status: provider,
    provider_dkim_status: provider,
    receiving: flag(false),
    tracking_subdomain: rarely(sample("links")),
    return_path: sample("bounce"),
    dkim_selectors: t.Array(sample("svc1")),
    warning: rarely(sample("The SPF record is missing.")),
    last_checked_at: maybe(time()),
    next_check_at: maybe(time()),
    verified_at: maybe(time()),
    failed_at: rarely(time()),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Domain" },
)

export const DomainStatusRecord = t.Object(
  {
    domain_id: id(),
    domain: sample("example.com"),
    status,
    dns_records: t.Array(DnsRecord),
    ...totals,
    progress: t.Integer({ minimum: 0, maximum: 100, examples: [100] }),
    last_checked_at: maybe(time()),
  },
  { title: "DomainStatus" },
)
