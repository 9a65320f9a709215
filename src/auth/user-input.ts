import { type Static, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { BulkFailures, type BulkItems, readItems } from "../http/bulk-items"
import { checkMetadata, metadataObject, nameText, oneOf, orNull } from "../http/field-schemas"
import { check } from "../http/validate"
import { notOneAddress, parseMailbox } from "../lib/address"
import { readPhone } from "../lib/phone"
import { count } from "../lib/record-fields"
import { type ForeignHash, readHash } from "../sign-in/foreign-hashes"
import { MOST_PASSWORD_CHARACTERS } from "../sign-in/passwords"
import { targetFields } from "./auth-rows"
import type { NewEndUser } from "./end-users"
import { MemberPatch } from "./organizations/organization-schemas"
import { givenOf, profileFields, readProfile } from "./profile-fields"

/** Of one import. */
const MOST_AT_ONCE = 1000

/** Passwords of one import that are hashed here, which takes a core tens of milliseconds each. */
const MOST_PLAIN = 200

export const password = () => t.String({ maxLength: MOST_PASSWORD_CHARACTERS })

const fields = {
  email: t.Optional(orNull(t.String({ maxLength: 320 }))),
  phone_number: t.Optional(
    orNull(t.String({ description: "A phone number, such as +4915112345678." })),
  ),
  ...profileFields,
  email_verified: t.Optional(t.Boolean()),
  phone_verified: t.Optional(t.Boolean()),
  app_metadata: t.Optional(
    metadataObject("Your own data, which the user cannot change. It replaces what was there."),
  ),
}

export const UserPatch = t.Object(fields)

const NewUser = { ...fields, password: t.Optional(password()) }

export const UserInput = t.Object({ ...targetFields, ...NewUser })

const ImportedUser = t.Object({
  ...NewUser,
  password_hash: t.Optional(
    t.String({
      maxLength: 512,
      description:
        "A hash of bcrypt (`$2b$…`), argon2 (PHC) or PBKDF2 (PHC, or as Django writes it). The first sign-in renews it.",
    }),
  ),
})

type HashKind = ForeignHash["kind"]

const HASH_KINDS = ["bcrypt", "argon2", "pbkdf2"] as const satisfies HashKind[]

const ImportTarget = t.Object({ ...targetFields, hash: t.Optional(oneOf(...HASH_KINDS)) })

export const UserImport = t.Object({
  ...ImportTarget.properties,
  users: t.Array(ImportedUser, {
    maxItems: MOST_AT_ONCE,
    description: `At most ${MOST_AT_ONCE}, of which ${MOST_PLAIN} may have a plain \`password\`. A broken one does not stop the others.`,
  }),
})

export const UsersImported = t.Object(
  { imported: count(998), failed: BulkFailures("users") },
  { title: "UsersImported" },
)

export const UserInvitation = t.Object({
  ...targetFields,
  email: t.String({ maxLength: 320 }),
  name: t.Optional(orNull(nameText())),
  organization_id: t.Optional(
    t.String({ description: "Where they become a member; without it Default." }),
  ),
  role: MemberPatch.properties.role,
  redirect_url: t.String({
    description: "Where the page of the invitation leads; the environment must list it.",
  }),
})

/** A user as a request describes them. */
export interface WantedUser extends NewEndUser {
  password?: string
}

type UserFields = Omit<Static<typeof UserPatch>, "password">

/** Reads the fields that a change names. */
export function readChanges(given: UserFields, problems: Problems): NewEndUser {
  const { email, phone_number, email_verified, phone_verified, app_metadata } = given
  if (typeof phone_number === "string") readPhone(phone_number, "phone_number", problems)
  if (app_metadata) checkAppMetadata(app_metadata, problems)
  return {
    ...readProfile(given, problems),
    ...givenOf({
      email: typeof email === "string" ? readEmail(email, problems) : email,
      ...{ phone_number, email_verified, phone_verified, app_metadata },
    }),
  }
}

/** The same rules, and the same limits, as of the metadata beside it. */
function checkAppMetadata(app_metadata: object, problems: Problems): void {
  const own = new Problems()
  checkMetadata(app_metadata, own)
  for (const { path, code, message } of own.list)
    problems.add(path.replace("metadata", "app_metadata"), code, message)
}

export function readEmail(text: string, problems: Problems): string | undefined {
  const mailbox = parseMailbox(text)
  return mailbox ? mailbox.email : problems.add("email", "invalid_email", notOneAddress(text))
}

/** Reads a new user, with an address or a number. */
export function readNew(
  { application_id, environment, password, ...given }: Static<typeof UserInput>,
  problems: Problems,
) {
  const user: WantedUser = { ...readChanges(given, problems), ...givenOf({ password }) }
  if (given.email == null && given.phone_number == null)
    problems.add("email", "required", "Give an `email` or a `phone_number`.")
  return { target: { application_id, environment }, user }
}

export interface UserImportInput extends BulkItems<WantedUser> {
  target: Static<typeof ImportTarget>
}

/** Reads up to 1,000 users. A broken one is named in the answer, and does not stop the others. */
export function readImport(body: unknown, problems: Problems): UserImportInput {
  const { application_id, environment, hash } = (body ?? {}) as Static<typeof ImportTarget>
  const target = givenOf({ application_id, environment, hash })
  check(ImportTarget, target, problems)
  const read = (item: Static<typeof ImportedUser>, own: Problems) => readListed(item, hash, own)
  const list = { name: "users", most: MOST_AT_ONCE, schema: ImportedUser, read }
  const items = readItems(body, list as never, problems) as BulkItems<WantedUser>
  const plain = items.given.filter(({ item }) => item.password !== undefined).length
  if (plain > MOST_PLAIN) {
    const message = `At most ${MOST_PLAIN} of the users may have a plain password, because each is hashed. Send the others in another request.`
    problems.add("users", "too_many_passwords", message)
  }
  return { target, ...items }
}

function readListed(
  { password_hash, ...given }: Static<typeof ImportedUser>,
  hash: HashKind | undefined,
  problems: Problems,
): WantedUser {
  const { user } = readNew(given, problems)
  if (password_hash === undefined) return user
  if (user.password !== undefined)
    problems.add("password", "invalid", "Give either `password` or `password_hash`, not both.")
  const known = readHash(password_hash)
  if (!known || (hash !== undefined && known.kind !== hash)) {
    const kinds = hash ?? "bcrypt, argon2 or PBKDF2"
    const message = `The value must be a hash of ${kinds} that costs no more than about a second.`
    problems.add("password_hash", "invalid", message)
  }
  return { ...user, password_hash }
}
