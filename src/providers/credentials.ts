import { type TObject, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { ruledText } from "../http/field-schemas"
import { check } from "../http/validate"
import { oncePer } from "../store/cached"
import type { Credentials, ProviderDescriptor } from "./provider"

/** The form of a provider's credentials. */
const credentialsSchema = oncePer(({ credentials }: ProviderDescriptor): TObject => {
  const fields = Object.entries(credentials).map(([name, { schema }]) => [name, schema])
  // Inside of their own name, so that a field may have any name.
  return t.Object({ credentials: t.Object(Object.fromEntries(fields)) })
})

/** Puts what is wrong into the collection, and returns what of it is known, as it is kept. */
export function readCredentials(
  descriptor: ProviderDescriptor,
  given: unknown,
  problems: Problems,
): Credentials {
  const wanted = withDefaults(descriptor, given ?? {})
  const found = new Problems()
  check(credentialsSchema(descriptor), { credentials: wanted }, found)
  for (const [name, value] of Object.entries(wanted)) {
    if (isSecret(descriptor, name) && typeof value === "string" && isMasked(value)) {
      found.add(`credentials.${name}`, "invalid", MASKED)
    }
  }
  for (const { path, code, message } of found.list) problems.add(path, code, message)
  if (found.any) return {}
  const fault = descriptor.validate?.(wanted)
  if (fault) problems.add(`credentials.${fault.field}`, fault.code, fault.message)
  const names = Object.keys(descriptor.credentials)
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => names.includes(name)))
}

function withDefaults({ credentials }: ProviderDescriptor, given: unknown): Credentials {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return { given }
  const fallbacks = Object.entries(credentials).flatMap(([name, { fallback }]) =>
    fallback === undefined ? [] : [[name, fallback]],
  )
  return { ...Object.fromEntries(fallbacks), ...given }
}

const isSecret = (descriptor: ProviderDescriptor | undefined, name: string): boolean =>
  descriptor === undefined || descriptor.credentials[name]?.secret === true

const MASK = "****"
const MASKED = "This is the masked value that answers show. Give the whole secret."

const isMasked = (text: string) => text.startsWith(MASK)

/** A secret that a request gives. The masked value of an answer is none. */
export const secretText = (maxLength: number) =>
  ruledText({ minLength: 1, maxLength }, (text) =>
    isMasked(text) ? ["invalid", MASKED] : undefined,
  )

const SHOWN = 4
const LEAST_HIDDEN = 8

/**
 * The same with every secret cut to its last four characters; short ones show none. All are secrets of
 * a provider that this version does not know.
 */
export const masked = (
  descriptor: ProviderDescriptor | undefined,
  credentials: Credentials,
): Credentials =>
  Object.fromEntries(
    Object.entries(credentials).map(([name, value]) => [
      name,
      isSecret(descriptor, name) ? maskedText(textOf(value)) : value,
    ]),
  )

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

/** A secret as answers show it: its last four characters, and none of a short one. */
export const maskedText = (text: string) =>
  `${MASK}${text.length >= SHOWN + LEAST_HIDDEN ? text.slice(-SHOWN) : ""}`

/** The fields that are no secrets and that SPF records are made from. */
export const publicFields = ({ credentials }: ProviderDescriptor, all: Credentials): Credentials =>
  Object.fromEntries(Object.entries(all).filter(([name]) => credentials[name]?.is_public === true))

/** Bound to the configuration: in another row it does not open. */
const contextOf = (config_id: string) => `provider_configs:${config_id}:credentials`

export const sealCredentials = (secrets: Secrets, config_id: string, credentials: Credentials) =>
  secrets.seal(JSON.stringify(credentials), contextOf(config_id))

/** Throws SecretError for another master key or another row. */
export function openCredentials(
  secrets: Secrets,
  { id, credentials }: { id: string; credentials: string | null },
): Credentials {
  return credentials === null
    ? {}
    : (JSON.parse(secrets.open(credentials, contextOf(id))) as Credentials)
}
