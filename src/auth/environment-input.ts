import { type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { readAddress } from "../emails/fields"
import { orNull } from "../http/field-schemas"
import { type SettingField, settingField, settingGroup, settingRows } from "../http/setting-fields"
import { isMailbox, wireDomain } from "../lib/address"
import { isPhone } from "../lib/phone"
import { count, flag, id, maybe, rarely, text, word } from "../lib/record-fields"
import { environmentWord } from "./application-schemas"
import {
  CAPTCHA_PROVIDERS,
  ENVIRONMENT_DEFAULTS,
  type EnvironmentSettings,
  MAIL_TYPES,
  type MailType,
  METHODS,
  type PasswordPolicy,
  type SignInMethod,
  type TestIdentifier,
} from "./environment-settings"
import { MOST_ADDRESSES } from "./redirects"

/** Null is the default again, or the setting of the application. Of a group, a change may name some fields. */
export type EnvironmentChange = {
  [Name in SettingName]?: Name extends GroupName
    ?
        | { [Field in keyof EnvironmentSettings[Name]]?: EnvironmentSettings[Name][Field] | null }
        | null
    : EnvironmentSettings[Name] | null
}

type SettingName = keyof EnvironmentSettings
type GroupName = (typeof GROUPS)[number]

/** Settings that are objects of settings. A change keeps those of their fields that it does not name. */
export const GROUPS = ["methods", "session", "password_policy", "mfa", "templates"] as const

const onOff = (example: boolean, description?: string) =>
  settingField<boolean>({
    answer: flag(example, description),
    patch: orNull(t.Boolean()),
    hint: "The value must be true, false or null.",
  })

/** A list of short texts of one form, each once. */
const textList = (
  {
    most,
    example,
    hint,
    ...about
  }: { most: number; example: string; hint: string; description?: string },
  keep: (given: string) => string | undefined,
) =>
  settingField<string[]>({
    answer: t.Array(text(example), about),
    patch: orNull(t.Array(t.String(), { maxItems: most, ...about })),
    hint: `The value must be a list of at most ${most} texts. ${hint}`,
    keep: (given: string[]) => {
      const kept = given.map(keep)
      return kept.every((one) => one !== undefined) ? [...new Set(kept)] : undefined
    },
  })

const one = (
  { example, hint, description }: { example: string; hint: string; description: string },
  keep: (given: string) => string | undefined,
) =>
  settingField<string | null>({
    answer: rarely(text(example, description)),
    patch: orNull(t.String({ description })),
    hint,
    keep,
  })

const matching = (form: RegExp) => (given: string) => (form.test(given) ? given : undefined)

/** Which of them are right depends on the type of the application, which decides later. */
const addresses = (example: string, description: string) =>
  settingField<string[]>({
    answer: rarely(t.Array(text(example), { description })),
    patch: orNull(t.Array(t.String(), { maxItems: MOST_ADDRESSES, description })),
    hint: `The value must be a list of at most ${MOST_ADDRESSES} texts, or null for those of the application.`,
  })

const hostOf = (given: string) => (given === "localhost" ? given : wireDomain(given))

const methods = settingGroup<Record<SignInMethod, boolean>>(
  Object.fromEntries(
    METHODS.map((method) => [method, onOff(ENVIRONMENT_DEFAULTS.methods[method])]),
  ) as Record<SignInMethod, SettingField<boolean>>,
  { description: "The ways in. One that is off answers 403." },
)

const MOST_SESSIONS = 100

const session = settingGroup<EnvironmentSettings["session"]>(
  {
    max_sessions: settingField<number | null>({
      answer: rarely(
        count(5, "With one more, the oldest session of a user ends. Null is no limit."),
      ),
      patch: orNull(t.Integer({ minimum: 1, maximum: MOST_SESSIONS })),
      hint: `The value must be a whole number from 1 to ${MOST_SESSIONS}, or null.`,
    }),
  },
  {},
)

const LONGEST_MINIMUM = 64
const LONGEST_HISTORY = 24

const atLeast = (least: number, most: number, description: string) =>
  settingField<number>({
    answer: count(least, description),
    patch: orNull(t.Integer({ minimum: least, maximum: most })),
    hint: `The value must be a whole number from ${least} to ${most}. A policy only asks for more.`,
  })

const always = () =>
  settingField<boolean>({
    answer: flag(true),
    patch: orNull(t.Literal(true)),
    hint: "The value must be true or null. A policy only asks for more.",
  })

const passwordPolicy = settingGroup<PasswordPolicy>(
  {
    min_length: atLeast(8, LONGEST_MINIMUM, "Characters of a password."),
    require_uppercase: always(),
    require_lowercase: always(),
    require_numbers: always(),
    require_special: always(),
    history: atLeast(5, LONGEST_HISTORY, "How many of the last passwords are refused."),
  },
  { description: "It may ask for more than the rules for all passwords, never for less." },
)

const MFA_METHODS = ["totp", "sms", "email"] as const

const wordOf = <const Words extends readonly string[]>(words: Words, description: string) =>
  settingField<Words[number]>({
    answer: word(words, description),
    patch: orNull(word(words)),
    hint: `The value must be ${words.join(" or ")}, or null.`,
  })

const mfa = settingGroup<EnvironmentSettings["mfa"]>(
  {
    policy: wordOf(["optional", "off", "required"], "Whether users need a second factor."),
    methods: settingField<string[]>({
      answer: t.Array(word(MFA_METHODS)),
      patch: orNull(t.Array(word(MFA_METHODS), { maxItems: MFA_METHODS.length })),
      hint: `The value must be a list of ${MFA_METHODS.join(", ")}.`,
      keep: (given: string[]) => [...new Set(given)],
    }),
  },
  {},
)

const MOST_TEMPLATE_CHARACTERS = 100

const templates = settingGroup<Record<MailType, string | null>>(
  Object.fromEntries(
    MAIL_TYPES.map((type) => [
      type,
      settingField<string | null>({
        answer: rarely(id()),
        patch: orNull(t.String({ minLength: 1, maxLength: MOST_TEMPLATE_CHARACTERS })),
        hint: "The value must be the id or the name of a template, or null for the default text.",
      }),
    ]),
  ) as Record<MailType, SettingField<string | null>>,
  { description: "Templates of the project in place of the default mails, by id or name." },
)

const MOST_SECRET_CHARACTERS = 500
const captchaAnswer = t.Object({
  provider: word(CAPTCHA_PROVIDERS),
  secret: text("****a1b2", "The end of it."),
})

const captcha = settingField<EnvironmentSettings["captcha"]>({
  answer: rarely(captchaAnswer),
  patch: orNull(
    t.Object({
      provider: word(CAPTCHA_PROVIDERS),
      secret: t.String({
        pattern: "^[\\x21-\\x7e]+$",
        maxLength: MOST_SECRET_CHARACTERS,
        description: "The secret key of your site at the service.",
      }),
    }),
  ),
  hint: `The value must be null, or an object with provider (${CAPTCHA_PROVIDERS.join(", ")}) and secret.`,
  keep: ({ provider, secret }: NonNullable<EnvironmentSettings["captcha"]>) =>
    secret.startsWith("****") ? undefined : { provider, secret },
})

const MOST_TEST_IDENTIFIERS = 10

const testIdentifiers = settingField<TestIdentifier[]>({
  answer: t.Array(
    t.Object({
      email: t.Optional(text("review@example.com")),
      phone_number: t.Optional(text("+4915112345678")),
      code: text("123456"),
    }),
    { description: "They take this code, and nothing is sent to them: for reviews of app stores." },
  ),
  patch: orNull(
    t.Array(
      t.Object({
        email: t.Optional(t.String()),
        phone_number: t.Optional(t.String()),
        code: t.String({ pattern: "^[0-9]{6}$", description: "Six digits." }),
      }),
      { maxItems: MOST_TEST_IDENTIFIERS },
    ),
  ),
  hint: `The value must be a list of at most ${MOST_TEST_IDENTIFIERS} objects with a code of six digits, and either email or phone_number.`,
  keep: (given: TestIdentifier[]) => {
    const kept = given.map(({ email, phone_number, code }) => {
      if (email !== undefined)
        return phone_number === undefined && isMailbox(email) && { email, code }
      return phone_number !== undefined && isPhone(phone_number) && { phone_number, code }
    })
    return kept.every((one) => one !== false) ? kept : undefined
  },
})

const sender: SettingField<EnvironmentSettings["sender"]> = {
  answer: rarely(
    t.Object(
      { email: text("login@example.com"), name: maybe(text("Shop")) },
      { description: "The sender of mail with codes and links. Null is that of the project." },
    ),
  ),
  patch: t.Union([
    t.Object({ email: t.String(), name: t.Optional(orNull(t.String())) }),
    t.String(),
    t.Null(),
  ]),
  read: readAddress,
}

const MOST_DOMAINS = 1000
const MOST_APPS = 20
const MOST_CLAIMS = 10

type SettingRows = { [Name in SettingName]: SettingField<unknown> }

/** Every setting of an environment, in the order of answers. */
const SETTINGS = {
  allowed_origins: addresses(
    "https://shop.example.com",
    "Origins of pages that may speak for users. Null is those of the application.",
  ),
  redirect_urls: addresses(
    "https://shop.example.com/signed-in",
    "URLs that links and sign-ins may lead to. Null is those of the application.",
  ),
  blocked_email_domains: textList(
    {
      ...{ most: MOST_DOMAINS, example: "example.net", hint: "Each must be a domain." },
      description: "An address in one of them can neither sign up nor be invited.",
    },
    wireDomain,
  ),
  passkey_rp_id: one(
    {
      ...{ example: "example.com", hint: "The value must be a host name, or null." },
      description: "The domain that passkeys are for.",
    },
    hostOf,
  ),
  bundle_ids: textList(
    { most: MOST_APPS, example: "com.example.shop", hint: "Each must be the id of an iOS app." },
    matching(/^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/),
  ),
  android_packages: textList(
    { most: MOST_APPS, example: "com.example.shop", hint: "Each must name an Android package." },
    matching(/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)+$/),
  ),
  methods,
  session,
  password_policy: passwordPolicy,
  mfa,
  hide_account_existence: onOff(
    false,
    "Whether answers hide which addresses and numbers have an account.",
  ),
  require_verified_email: onOff(false, "Whether a session needs a verified address."),
  organization_creation: wordOf(
    ["none", "members"],
    "Whether members may make organizations, too.",
  ),
  sender,
  templates,
  token_claims: textList(
    {
      ...{ most: MOST_CLAIMS, example: "plan" },
      hint: "Each must have 1 to 64 characters of one line.",
      description: "Names of `app_metadata` that access tokens show, as far as 1 KiB reaches.",
    },
    matching(/^[^\p{C}\u2028\u2029]{1,64}$/u),
  ),
  captcha,
  test_identifiers: testIdentifiers,
  sms_origin: one(
    {
      ...{ example: "example.com", hint: "The value must be a host name, or null." },
      description: "Texts with codes end with a line that binds the code to this origin.",
    },
    wireDomain,
  ),
  android_sms_hash: one(
    {
      ...{
        example: "FA+9qCX9VSu",
        hint: "The value must have the 11 characters of an app's hash.",
      },
      description: "Texts with codes have a line by which this app receives them.",
    },
    matching(/^[A-Za-z0-9+/]{11}$/),
  ),
} satisfies SettingRows

const rows = settingRows<EnvironmentChange>(SETTINGS)

/** As the contract shows it (50, section 2). */
export const Environment = t.Object(
  {
    name: environmentWord(),
    status: word(["active"]),
    ...(rows.answer as { [Name in SettingName]: TSchema }),
    default_organization_id: id(),
  },
  { title: "Environment" },
)

export const EnvironmentPatch = rows.patch

export const readEnvironmentPatch = (body: unknown, problems: Problems): EnvironmentChange =>
  rows.read(body, problems)
