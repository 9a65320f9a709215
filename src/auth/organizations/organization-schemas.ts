import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../../core/errors"
import { checkMetadata, metadataObject, nameText } from "../../http/field-schemas"
import { wireDomain } from "../../lib/address"
import { anything, count, flag, id, maybe, text, time, word } from "../../lib/record-fields"
import { targetFields } from "../auth-rows"
import { givenOf } from "../profile-fields"
import { ENVIRONMENT_NAMES } from "../tables"

/** As the contract shows it (51, section 3). */
export const Organization = t.Object(
  {
    id: id(),
    application_id: id(),
    environment: word(ENVIRONMENT_NAMES),
    name: text("Acme"),
    slug: text("acme"),
    is_default: flag(false, "Every user of the environment is a member of this one."),
    mfa_required: flag(false),
    allowed_email_domains: t.Array(text("acme.example")),
    metadata: anything({ plan: "gold" }),
    member_count: count(12),
    created_at: time(),
    updated_at: time(),
    role: t.Optional(
      text(
        "owner",
        "The role of the user that asks. Answers to keys and to people of the console have none.",
      ),
    ),
  },
  { title: "Organization" },
)

const membership = {
  id: id(),
  organization_id: id(),
  environment_id: id(),
  end_user_id: id(),
  role: text("member", "`owner`, `admin`, `member`, or another text without special rights."),
  permissions: t.Array(text("invoices:read")),
  created_at: time(),
  updated_at: time(),
}

export const Membership = t.Object(membership, { title: "Membership" })

export const OrganizationMember = t.Object(
  { ...membership, email: maybe(text("ann@example.com")), name: maybe(text("Ann")) },
  { title: "OrganizationMember" },
)

const MOST_DOMAINS = 100
const LONGEST_DOMAIN = 253

const fields = {
  name: nameText(),
  slug: t.String({
    pattern: "^[a-z0-9-]{1,100}$",
    description: "1 to 100 characters: a-z, 0-9 and hyphens.",
  }),
  metadata: metadataObject(
    "The app's own data, at most 50 keys and 16 KiB. It replaces what was there.",
  ),
}

const { name, ...others } = fields

export const NewOrganization = t.Object({
  ...{ name, ...t.Partial(t.Object(others)).properties },
  ...targetFields,
})

export const OrganizationPatch = t.Partial(
  t.Object({
    ...fields,
    mfa_required: t.Boolean({ description: "A session that lands here needs a second factor." }),
    allowed_email_domains: t.Array(t.String({ maxLength: LONGEST_DOMAIN }), {
      maxItems: MOST_DOMAINS,
      description: "Only addresses in them get in. An empty list lets in every one. Members stay.",
    }),
  }),
)

export type OrganizationInput = Pick<Static<typeof NewOrganization>, "name" | "slug" | "metadata">
export type OrganizationChanges = Static<typeof OrganizationPatch>

/** Checks the metadata. */
export function readNewOrganization(given: Static<typeof NewOrganization>, problems: Problems) {
  if (given.metadata) checkMetadata(given.metadata, problems)
  return given
}

/** The changes that a body names, with the domains as they compare. */
export function readOrganizationPatch(
  given: OrganizationChanges,
  problems: Problems,
): OrganizationChanges {
  const { name, slug, metadata, mfa_required, allowed_email_domains: domains } = given
  if (metadata) checkMetadata(metadata, problems)
  const allowed_email_domains = domains && readDomains(domains, problems)
  return givenOf({ name, slug, metadata, mfa_required, allowed_email_domains })
}

function readDomains(given: string[], problems: Problems): string[] {
  const kept = given.map((text, at) => {
    const domain = wireDomain(text)
    if (domain === undefined)
      problems.add(`allowed_email_domains.${at}`, "invalid", "This is not a domain name.")
    return domain ?? ""
  })
  return [...new Set(kept)]
}

const MOST_PERMISSIONS = 50
const LONGEST_WORD = 64

/** Of a member. */
export const roleField = () =>
  t.String({ ...nameText(LONGEST_WORD), description: membership.role.description ?? "" })

const member = {
  role: roleField(),
  permissions: t.Array(nameText(LONGEST_WORD), {
    maxItems: MOST_PERMISSIONS,
    description: "Texts of the app. Tokens show those of the active organization.",
  }),
}

export const MemberPatch = t.Partial(t.Object(member))

export const NewMember = t.Object({
  user_id: id("A user of the organization's environment."),
  ...MemberPatch.properties,
})

export type MemberChanges = Static<typeof MemberPatch>
export type MemberInput = Static<typeof NewMember>
