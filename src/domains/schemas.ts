import { type TSchema, Type as t } from "@sinclair/typebox"
import { aliasOf, notOffered } from "../http/field-names"
import { pageQuery } from "../http/page"
import { oneOf, orNull } from "../http/texts"

const text = (description: string) => t.String({ description })
const nullable = (schema: TSchema) => t.Union([schema, t.Null()])

export const status = oneOf("pending", "verified", "failed")

const domain = text("example.com; at most 180 characters, as A-labels.")

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
  tracking_subdomain: t.Optional(orNull(text("links, for links.example.com"))),
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
  selector: t.Optional(text("Of the new key; without it svc2, svc1 and so on.")),
})

export const domainQuery = pageQuery({
  status: t.Optional(status),
  domain: t.Optional(text("A part of the name.")),
})

const DnsRecord = t.Object({
  purpose: oneOf(
    ...(["verification", "spf", "dkim", "dmarc", "return_path", "tracking", "receiving"] as const),
  ),
  type: oneOf("TXT", "MX", "CNAME"),
  name: text("As DNS providers want it: without the zone."),
  host: text("The full name."),
  value: t.String(),
  priority: nullable(t.Integer()),
  ttl: t.Integer(),
  required: t.Boolean(),
  verified: t.Boolean(),
  status: oneOf("pending", "verified", "mismatch", "missing"),
  found: t.Array(t.String()),
  hint: orNull(t.String()),
  mistake: orNull(text("A name for what the hint explains.")),
  difference: nullable(
    t.Object({}, { description: "{at, expected, found}: the first wrong character." }),
  ),
  answers: t.Array(t.Object({}), {
    description: "{server, answer, values, alias} of each server.",
  }),
})

const provider = oneOf("not_required", "pending", "success", "failed")
const moment = orNull(t.String())
const totals = { records_total: t.Integer(), records_verified: t.Integer() }

export const Domain = t.Object({
  id: t.String(),
  project_id: t.String(),
  domain: t.String(),
  status,
  verification_token: t.String(),
  dns_records: t.Array(DnsRecord),
  ...totals,
  provider_identity_status: provider,
  provider_dkim_status: provider,
  receiving: t.Boolean(),
  tracking_subdomain: orNull(t.String()),
  return_path: t.String(),
  dkim_selectors: t.Array(t.String()),
  warning: orNull(t.String()),
  last_checked_at: moment,
  next_check_at: moment,
  verified_at: moment,
  failed_at: moment,
  created_at: t.String(),
  updated_at: t.String(),
})

export const DomainStatusRecord = t.Object({
  domain_id: t.String(),
  domain: t.String(),
  status,
  dns_records: t.Array(DnsRecord),
  ...totals,
  progress: t.Integer({ minimum: 0, maximum: 100 }),
  last_checked_at: moment,
})
