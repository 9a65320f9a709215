import type { Components } from "../../src/client/components"
import { metadata } from "../lib/body-flags"
import { deletes, ID, type PlainFlags, type Resource, row } from "../lib/resource"
import { ago, type Columns, count, idColumn, wide } from "../lib/table"
import { target, targetAliases } from "./users"

const columns: Columns<Components["Organization"]> = {
  ID: idColumn("organization"),
  NAME: wide(({ name }) => name),
  SLUG: "slug",
  MEMBERS: count(({ member_count }) => member_count),
  MFA: ({ mfa_required }) => (mfa_required ? "required" : ""),
  AGE: ago(({ created_at }) => created_at),
}

/** Of one user. */
const ofUser = { ...columns, ROLE: "role" as const }

const names: PlainFlags = {
  metadata,
  name: "name of the organization",
  slug: "short name: a-z, 0-9 and hyphens (default: made of the name)",
}

const ONE = "/v1/auth/organizations/{organization_id}"

const organizationRows = [
  row("list", "GET /v1/auth/organizations", {
    example: ["--q acme", "--environment test"],
    flags: { ...target, user_id: "show only organizations of this user, with their role" },
    aliases: { ...targetAliases, user_id: "user-id" },
    columns: (_, { userId }) => (userId === undefined ? columns : ofUser),
    next: ([first]) => first && `orgs members list ${first.id}`,
  }),
  row("get <id>", `GET ${ONE}`, { about: "show an organization" }),
  row("create", "POST /v1/auth/organizations", {
    about: "create an organization; its plan allows more than the Default one",
    example: "--name Acme",
    flags: { ...target, ...names },
    aliases: targetAliases,
    done: ({ name, id }) => `created ${name}   ${id}`,
    next: ({ id }) => `orgs members add ${id} USER_ID --role owner`,
  }),
  row("update <id>", `PATCH ${ONE}`, {
    about: "change an organization; fields without a flag stay",
    example: ["--mfa-required on", "--domain acme.test"],
    note: "--metadata replaces what is there.",
    flags: {
      ...names,
      slug: "short name: a-z, 0-9 and hyphens",
      mfa_required: "whether its members need a second factor there",
      allowed_email_domains:
        "domain of addresses that new members have, or none for every domain; may be repeated",
    },
    aliases: { allowed_email_domains: "domain" },
    done: ({ name }) => `changed ${name}`,
  }),
  row("rm <id>", `DELETE ${ONE}`, {
    about: "delete an organization; its members keep their users",
    ...deletes((id) => `The organization ${id} will be deleted with its memberships, for good.`),
  }),
]

const ROLE = "role: owner, admin or member; other words have no rights (default: member)"
const permissions = "permission that the access token names; may be repeated"
const permission = { permissions: "permission" }

const memberRows = [
  row("list <organization>", `GET ${ONE}/members`, {
    about: "list the members of an organization, newest first",
    columns: {
      USER: idColumn("user", ({ end_user_id }) => end_user_id),
      EMAIL: wide(({ email }) => email, "last"),
      NAME: wide(({ name }) => name, "first"),
      ROLE: "role",
      PERMISSIONS: wide((one) => one.permissions.join(" ")),
      SINCE: ago(({ created_at }) => created_at),
    },
  }),
  row("add <organization> <user>", `POST ${ONE}/members`, {
    about: "make a user a member",
    example: ["", "--role admin --permission invoices:read"],
    flags: { role: ROLE, permissions },
    aliases: permission,
    done: ({ end_user_id, role }) => `${end_user_id} is ${role}`,
  }),
  row("update <organization> <user>", `PATCH ${ONE}/members/{user_id}`, {
    about: "change the role or the permissions of a member",
    example: "--role owner",
    flags: {
      role: "new role: owner, admin or member",
      permissions: `${permissions}; none removes all`,
    },
    aliases: permission,
    done: ({ end_user_id, role }) => `${end_user_id} is ${role}`,
  }),
  row("rm <organization> <user>", `DELETE ${ONE}/members/{user_id}`, {
    about: "end a membership; the user stays",
    ...deletes((_, user) => `The user ${user} will be no member any more.`),
    done: (_, [, user]) => `removed ${user}`,
  }),
]

const invitationRows = [
  row("list <organization>", `GET ${ONE}/invitations`, {
    about: "list the invitations to an organization, newest first",
    columns: {
      ID: "id",
      EMAIL: wide(({ email }) => email, "last"),
      ROLE: "role",
      STATUS: "status",
      ENDS: ago(({ expires_at }) => expires_at),
    },
  }),
  row("create <organization> <email>", `POST ${ONE}/invitations`, {
    about: "mail an invitation that works for seven days",
    example: "--role admin --redirect-url https://app.example.test/join",
    flags: {
      role: ROLE,
      redirect_url: "where the page of the invitation leads; the environment must list it",
    },
    done: ({ email, id }) => `invited ${email}   ${id}`,
  }),
  row("rm <organization> <invitation>", `DELETE ${ONE}/invitations/{invitation_id}`, {
    about: "revoke an invitation; its link stops working",
    ...deletes((_, invitation) => `The link of invitation ${invitation} will stop working.`),
    done: (_, [, invitation]) => `revoked ${invitation}`,
  }),
]

export const organizationResources: Resource[] = [
  {
    noun: "orgs",
    about: "manage the organizations of end users",
    example: ["orgs list", `orgs update ${ID} --mfa-required on`],
    rows: organizationRows,
  },
  { noun: "orgs members", about: "manage the members of an organization", rows: memberRows },
  {
    noun: "orgs invitations",
    about: "manage invitations to an organization",
    rows: invitationRows,
  },
]
