import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import {
  checkMetadata,
  localeText,
  metadataObject,
  nameText,
  orNull,
  ruledText,
} from "../http/field-schemas"

const LONGEST_URL = 2048

/** What users say of themselves. `readProfile` has the rest of the rules. */
export const profileFields = {
  name: t.Optional(orNull(nameText())),
  avatar_url: t.Optional(
    orNull(
      ruledText(
        { maxLength: LONGEST_URL, description: "The address of a picture, https or http." },
        (text) =>
          /^https?:\/\/\S+$/.test(text) && URL.canParse(text)
            ? undefined
            : ["invalid", "The value must be a URL that begins with https: or http:."],
      ),
    ),
  ),
  locale: t.Optional(orNull(localeText())),
  metadata: t.Optional(
    metadataObject(
      "The app's own data, at most 50 keys and 16 KiB. It replaces what was there. The user can read and change it.",
    ),
  ),
}

const Profile = t.Object(profileFields)

/** The profile that a body names, without the fields that it does not. */
export function readProfile(given: Static<typeof Profile>, problems: Problems) {
  const { name, avatar_url, locale, metadata } = given
  if (metadata) checkMetadata(metadata, problems)
  return givenOf({ name, avatar_url, locale, metadata })
}

/** Of these fields, those that were given. */
export const givenOf = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<{
    [Name in keyof Fields]: Exclude<Fields[Name], undefined>
  }>
