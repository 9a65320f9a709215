import { type Static, Type as t } from "@sinclair/typebox"
import { nameText, oneOf, orNull, ruledText } from "../http/field-schemas"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { isLonger } from "../lib/text"
import { MOST_ADDRESSES } from "./redirects"
import { APPLICATION_TYPES, ENVIRONMENT_NAMES } from "./tables"

export const environmentWord = () => word(ENVIRONMENT_NAMES)

/** As the contract shows it (50, section 2). */
export const Application = t.Object(
  {
    id: id(),
    account_id: id(),
    project_id: id(),
    name: text("Shop"),
    slug: text("shop"),
    type: word(APPLICATION_TYPES),
    logo_url: rarely(text("https://example.com/logo.png")),
    public_key: maybe(text("svca_live_pub_4fTz9…", "The newest public key of `live`.")),
    public_keys: t.Object({
      live: maybe(text("svca_live_pub_4fTz9…")),
      test: maybe(text("svca_test_pub_b81Kq…")),
    }),
    legacy_public_key: rarely(text("svca_pub_x2Wc7…", "It names no environment.")),
    session_duration_minutes: count(60, "The lifetime of an access token."),
    refresh_token_duration_days: count(
      30,
      "The days after which a session ends that nobody refreshed.",
    ),
    allowed_origins: t.Array(text("https://shop.example.com")),
    redirect_urls: t.Array(text("https://shop.example.com/signed-in")),
    environments: t.Array(
      t.Object({
        name: environmentWord(),
        status: word(["active"]),
        users: count(1200, "How many users it has."),
      }),
    ),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Application" },
)

export type ApplicationRecord = Static<typeof Application>

export const NewApplicationRecord = t.Object(
  {
    ...Application.properties,
    secret_key: text("svca_sec_Jk81…", "Only this answer shows it. It is for servers."),
  },
  { title: "NewApplication" },
)

export const ApplicationKey = t.Object(
  {
    id: id(),
    environment: maybe(environmentWord()),
    name: text("Website"),
    key: text("svca_live_pub_4fTz9…", "It is public: applications show it to everybody."),
    status: word(["active"]),
    last_used_at: maybe(time()),
    created_at: time(),
  },
  { title: "ApplicationKey" },
)

export const ApplicationKeys = t.Array(ApplicationKey)

export const RotatedSecret = t.Object(
  {
    secret_key: text("svca_sec_Jk81…", "Only this answer shows it."),
    previous_expires_at: time("Until then the old secret works."),
  },
  { title: "RotatedSecret" },
)

export const OwnApplication = t.Object(
  {
    id: id(),
    name: text("Shop"),
    slug: text("shop"),
    environment: maybe(environmentWord()),
    key_type: word(["environment", "legacy"]),
  },
  { title: "OwnApplication" },
)

const MOST_NAME_CHARACTERS = 255
const LONGEST_SESSION_MINUTES = 1440
const LONGEST_REFRESH_DAYS = 365
const MOST_URL_CHARACTERS = 2048

/** An https:// address of an image, or of a page that people may look at. */
export const isShownUrl = (given: string): boolean => {
  const url = isLonger(given, MOST_URL_CHARACTERS) ? null : URL.parse(given)
  return url?.protocol === "https:" && url.username === "" && url.password === ""
}

const addressList = (what: string) =>
  t.Array(t.String({ description: what }), { maxItems: MOST_ADDRESSES })

const fields = {
  name: nameText(MOST_NAME_CHARACTERS),
  slug: t.String({
    pattern: "^[a-z0-9-]{1,100}$",
    description: "1 to 100 characters: a-z, 0-9 and hyphens.",
  }),
  type: oneOf(...APPLICATION_TYPES),
  session_duration_minutes: t.Integer({ minimum: 1, maximum: LONGEST_SESSION_MINUTES }),
  refresh_token_duration_days: t.Integer({ minimum: 1, maximum: LONGEST_REFRESH_DAYS }),
  allowed_origins: addressList("An origin, such as https://shop.example.com."),
  redirect_urls: addressList("A URL that links and sign-ins may lead to."),
}

const { name, ...others } = fields

export const NewApplication = t.Object({ name, ...t.Partial(t.Object(others)).properties })

export const ApplicationPatch = t.Partial(
  t.Object({
    ...fields,
    logo_url: orNull(
      ruledText({ description: "An https:// URL of an image." }, (given) =>
        isShownUrl(given)
          ? undefined
          : ["invalid_url", "The value must be an https:// URL without a password."],
      ),
    ),
  }),
)

export type ApplicationInput = Static<typeof NewApplication>
export type ApplicationChanges = Static<typeof ApplicationPatch>

export const Confirmation = t.Object({
  confirm: t.String({ description: "The slug of the application." }),
})

const MOST_OVERLAP_HOURS = 72
export const DEFAULT_OVERLAP_HOURS = 24

export const SecretRotation = t.Object({
  overlap_hours: t.Optional(
    t.Integer({ minimum: 0, maximum: MOST_OVERLAP_HOURS, default: DEFAULT_OVERLAP_HOURS }),
  ),
})

export const NewApplicationKey = t.Object({
  name: nameText(),
  environment: t.Optional(oneOf(...ENVIRONMENT_NAMES)),
  legacy: t.Optional(
    t.Boolean({ description: "A key without an environment, of which there is at most one." }),
  ),
})

export const keyRemoval = t.Object({
  force: t.Optional(flag(false, "Deletes also the last key of an environment.")),
})
