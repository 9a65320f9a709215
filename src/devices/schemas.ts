import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode } from "../core/errors"
import {
  localeText,
  metadataObject,
  nameText,
  ONE_LINE,
  oneOf,
  optionalText,
  orNull,
  timeZoneText,
} from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { anything, count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { NO_PATH_NAME } from "../lib/reserved-names"
import { LONGEST_EXTERNAL_ID } from "../subscribers/schemas"
import { DEVICE_STATUSES, PLATFORMS, PUSH_PROVIDERS } from "./tables"

export const MOST_AT_ONCE = 1000

/** A token of FCM has about 200 characters, an endpoint of Web Push up to a few hundred. */
const LONGEST_TOKEN = 4096
const LONGEST_ENDPOINT = 2048
const LONGEST_VERSION = 64
const LONGEST_TOPIC = 255

const name = (description: string) =>
  t.String({ minLength: 1, maxLength: LONGEST_EXTERNAL_ID, pattern: ONE_LINE, description })

const Subscription = t.Object(
  {
    endpoint: t.String({ maxLength: LONGEST_ENDPOINT, description: "An https URL." }),
    keys: t.Object({
      p256dh: t.String({ maxLength: 255, description: "A point of P-256, in base64url." }),
      auth: t.String({ maxLength: 255, description: "16 bytes in base64url." }),
    }),
  },
  { description: "What `PushSubscription.toJSON()` of a browser gives. Only of Web Push." },
)

/** How a provider knows the device. */
const address = {
  token: optionalText({
    maxLength: LONGEST_TOKEN,
    pattern: "^[\\x21-\\x7e]+$",
    description: "What APNs or FCM gave to the app. Web Push has a `subscription` instead.",
  }),
  subscription: t.Optional(Subscription),
}

const about = {
  app_version: t.Optional(orNull(nameText(LONGEST_VERSION))),
  os_version: t.Optional(orNull(nameText(LONGEST_VERSION))),
  locale: t.Optional(orNull(localeText())),
  timezone: t.Optional(orNull(timeZoneText())),
  metadata: t.Optional(metadataObject("Your own data, at most 50 keys and 16 KiB.")),
}

export const DeviceInput = t.Object({
  device_id: t.Optional({
    ...name("The name of the installation, unique in its scope. Without it, the server makes one."),
    not: NO_PATH_NAME,
  }),
  user_id: t.Optional(
    name(
      "The subscriber's external id. Required for keys and people; the token of a subscriber says it.",
    ),
  ),
  platform: oneOf(...PLATFORMS),
  provider: t.Optional(
    t.Unsafe<(typeof PUSH_PROVIDERS)[number]>({
      ...oneOf(...PUSH_PROVIDERS),
      description: "Default: `apns` for ios and macos, `fcm` for android, `webpush` for web.",
    }),
  ),
  ...address,
  device_name: t.Optional(orNull(nameText())),
  app_id: t.Optional(orNull(nameText(LONGEST_TOPIC))),
  ...about,
  apns_environment: t.Optional(orNull(oneOf("sandbox", "production"))),
})

export const DeviceChange = t.Object({
  ...address,
  ...about,
  enabled: t.Optional(
    t.Boolean({ description: "`false` disables the device until it is `true` again." }),
  ),
})

export const DeviceBatch = t.Object({
  devices: t.Array(DeviceInput, { minItems: 1, maxItems: MOST_AT_ONCE }),
})

const DEVICE_ID = "phone-1"

const ShownScope = t.Object({
  type: word(["project", "application", "environment"]),
  application_id: t.Optional(id()),
  environment: t.Optional(word(["live", "test"])),
})

export const Device = t.Object(
  {
    id: id(),
    device_id: text(DEVICE_ID),
    user_id: maybe(text("user-42", "Null after a sign-out.")),
    subscriber_id: maybe(id("The subscriber whose external id is `user_id`.")),
    platform: word(["android", ...PLATFORMS.filter((one) => one !== "android")]),
    provider: word(["fcm", ...PUSH_PROVIDERS.filter((one) => one !== "fcm")]),
    token: maybe(
      text(
        "fcm-token",
        "For Web Push it is the endpoint. Only keys and people of the project see it.",
      ),
    ),
    device_name: maybe(text("Ann's phone")),
    app_id: rarely(text("com.example.app")),
    app_version: maybe(text("4.2.0")),
    os_version: maybe(text("15")),
    locale: maybe(text("de-AT")),
    timezone: maybe(text("Europe/Vienna")),
    apns_environment: rarely(word(["sandbox", "production"])),
    scope: ShownScope,
    status: word(
      DEVICE_STATUSES,
      "`expired`: the provider does not know the token any more. A new one makes the device active.",
    ),
    status_reason: rarely(text("unregistered")),
    failure_count: count(0, "Failures since the last success."),
    metadata: anything({ theme: "dark" }),
    last_active_at: time("When its app was heard last."),
    last_success_at: maybe(time("When a provider took a message for it last.")),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Device" },
)

export const DeviceStats = t.Object(
  {
    total: count(3),
    active: count(2),
    expired: count(1),
    by_platform: t.Record(t.String(), count(1), { examples: [{ ios: 1, android: 2 }] }),
    by_provider: t.Record(t.String(), count(1), { examples: [{ apns: 1, fcm: 2 }] }),
  },
  { title: "DeviceStats" },
)

export const DeviceBatchResult = t.Object(
  {
    total: count(2),
    succeeded: count(1),
    failed: count(1),
    results: t.Array(
      t.Union([
        t.Object({ index: count(0), id: id(), device_id: text(DEVICE_ID) }),
        t.Object({
          index: count(1),
          error: t.Object({
            code: t.Unsafe<ErrorCode>(t.String({ enum: Object.keys(codes) })),
            message: t.String(),
            details: t.Record(t.String(), t.Unknown()),
          }),
        }),
      ]),
    ),
  },
  { title: "DeviceBatchResult" },
)

export const RemovedDevices = t.Object(
  { user_id: text("user-42"), deleted: count(2) },
  { title: "RemovedDevices" },
)

export const deviceQuery = pageQuery({
  user_id: optionalText({ maxLength: LONGEST_EXTERNAL_ID, description: "Only of this user." }),
  platform: t.Optional(word(PLATFORMS, "Only devices of this platform.")),
  status: t.Optional(oneOf(...DEVICE_STATUSES)),
  scope: t.Optional(
    word(["project", "application", "environment"], "Only devices of scopes of this type."),
  ),
})
