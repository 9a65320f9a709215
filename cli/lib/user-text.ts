import type { Components } from "../../src/client/components"
import { type Columns, idColumn } from "./table"
import { age } from "./time"

type User = Components["User"]

/** The address or number by which people know an end user. */
export const identifierOf = ({ email, phone_number, anonymous_device_id, id }: User): string =>
  email ?? phone_number ?? anonymous_device_id ?? id

/** End users, as lists show them. */
export const userColumns: Columns<User> = {
  ID: idColumn("user"),
  USER: { cell: identifierOf, flexible: true },
  NAME: { cell: ({ name }) => name ?? "", spare: 3 },
  STATUS: {
    cell: ({ status }) => status,
    paint: (text, { status }, paint) =>
      status === "suspended" ? paint.red(text) : status === "active" ? text : paint.yellow(text),
    least: 9,
  },
  VERIFIED: { cell: verifiedWord, spare: 4 },
  "LAST LOGIN": { cell: ({ last_login_at }) => age(last_login_at), spare: 2 },
  AGE: ({ created_at }) => age(created_at),
}

function verifiedWord({ email, phone_number, email_verified, phone_verified }: User): string {
  const words = [
    ...(email === null ? [] : [email_verified ? "email" : "email ✗"]),
    ...(phone_number === null ? [] : [phone_verified ? "phone" : "phone ✗"]),
  ]
  return words.join(" ")
}

/** The open sessions of one user. */
export const userSessionColumns: Columns<Components["UserSession"]> = {
  ID: "id",
  DEVICE: { cell: ({ device }) => device ?? "", flexible: true },
  IP: { cell: ({ ip }) => ip ?? "", spare: 2 },
  "LAST USED": ({ last_used_at }) => age(last_used_at),
  EXPIRES: { cell: ({ expires_at }) => age(expires_at), spare: 3 },
}

/** The accounts elsewhere that a user signs in with. */
export const identityColumns: Columns<User["identities"][number]> = {
  ID: "id",
  PROVIDER: "provider",
  ACCOUNT: { cell: ({ provider_user_id }) => provider_user_id, flexible: true },
  EMAIL: { cell: ({ email }) => email ?? "", flexible: "last" },
  LINKED: ({ linked_at }) => age(linked_at),
}

/** The organizations of one user. */
export const ownOrganizationColumns: Columns<Components["Organization"]> = {
  ID: "id",
  NAME: { cell: ({ name }) => name, flexible: true },
  ROLE: ({ role }) => role,
  MFA: { cell: ({ mfa_required }) => (mfa_required ? "required" : ""), spare: 2 },
}
