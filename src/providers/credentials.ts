import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/problems"
import type { Secrets } from "../core/secrets"
import { oneOf } from "../http/field-schemas"
import { check } from "../http/validate"

const line = (maxLength: number) =>
  t.String({ minLength: 1, maxLength, pattern: "^[^\\u0000-\\u001f\\u007f]*$" })

export const SmtpCredentials = t.Object({
  host: t.String({ pattern: "^[A-Za-z0-9_.:-]+$", maxLength: 253 }),
  port: t.Integer({ minimum: 1, maximum: 65_535 }),
  username: t.Optional(line(255)),
  password: t.Optional(line(1024)),
  tls: oneOf("starttls", "implicit", "none"),
})

export const SesCredentials = t.Object({
  region: t.String({ pattern: "^[a-z]{2}(-[a-z]+)+-\\d{1,2}$" }),
  access_key_id: t.String({ pattern: "^[A-Za-z0-9]{16,128}$" }),
  secret_access_key: line(256),
  configuration_set: t.Optional(t.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" })),
})

const None = t.Object({})

export type SmtpAccess = Static<typeof SmtpCredentials>
export type SesAccess = Static<typeof SesCredentials>
export type Credentials = Record<string, unknown>

/** Who can deliver email, and what each needs to know. */
export const EMAIL_PROVIDERS = {
  mailbox: None,
  direct: None,
  smtp: SmtpCredentials,
  ses: SesCredentials,
} satisfies Record<string, TSchema>

export type EmailProviderKind = keyof typeof EMAIL_PROVIDERS

export const isEmailProvider = (name: string): name is EmailProviderKind =>
  Object.hasOwn(EMAIL_PROVIDERS, name)

/** Puts what is wrong into the collection, and returns what of it is known, as it is kept. */
export function readCredentials(
  provider: EmailProviderKind,
  given: unknown,
  problems: Problems,
): Credentials {
  const wanted = withDefaults(provider, given ?? {})
  const found: { path: string; code: string; message: string }[] = []
  check(EMAIL_PROVIDERS[provider], wanted, {
    add: (path: string, code: string, message: string) => found.push({ path, code, message }),
  } as unknown as Problems)
  for (const [name, value] of Object.entries(wanted)) {
    if (SECRET.has(name) && typeof value === "string" && value.startsWith(MASK)) {
      found.push({
        path: name,
        code: "invalid",
        message: "This is the masked value that answers show. Give the whole secret.",
      })
    }
  }
  for (const { path, code, message } of found) {
    problems.add(path === "body" ? "credentials" : `credentials.${path}`, code, message)
  }
  if (found.length > 0) return {}
  const { username, password } = wanted
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? "username" : "password"
    problems.add(
      `credentials.${missing}`,
      "required",
      "Give username and password together, or neither.",
    )
  }
  const names = Object.keys(EMAIL_PROVIDERS[provider].properties)
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => names.includes(name)))
}

function withDefaults(provider: EmailProviderKind, given: unknown): Credentials {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return { given }
  return provider === "smtp" ? { port: 587, tls: "starttls", ...given } : { ...given }
}

const SECRET = new Set(["password", "access_key_id", "secret_access_key"])

const MASK = "****"
const SHOWN = 4
const LEAST_HIDDEN = 8

/** The same with every secret cut to its last four characters; short ones show none. */
export const masked = (credentials: Credentials): Credentials =>
  Object.fromEntries(
    Object.entries(credentials).map(([name, value]) => [
      name,
      SECRET.has(name) ? maskedText(String(value)) : value,
    ]),
  )

const maskedText = (text: string) =>
  `${MASK}${text.length >= SHOWN + LEAST_HIDDEN ? text.slice(-SHOWN) : ""}`

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
