import type { Static } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { checkMetadata } from "../http/field-schemas"
import { check } from "../http/validate"
import { notOneAddress, parseMailbox } from "../lib/address"
import { isLocale, isTimeZone } from "../lib/locale"
import { readPhone } from "../lib/phone"
import { reservedProblem } from "../lib/reserved-names"
import type { SubscriberRow } from "./find-subscriber"
import * as schemas from "./schemas"
import type { TemplateSubscriber } from "./template-subscriber"

/** Fields that were given. What is absent stays as it is; null removes it. */
type SubscriberFields = Partial<
  Omit<TemplateSubscriber, "id" | "external_id"> & Pick<SubscriberRow, "status">
>

export interface SubscriberInput {
  external_id: string
  fields: SubscriberFields
}

export interface ChangesInput {
  fields: SubscriberFields & Partial<Pick<SubscriberRow, "external_id">>
}

/** Reads an item of a list of subscribers. */
export function readListed(
  { status, ...rest }: Static<typeof schemas.BulkSubscriber>,
  problems: Problems,
): SubscriberInput {
  const { external_id, fields } = readNew(rest, problems)
  return { external_id, fields: { ...fields, ...(status && { status }) } }
}

/** Reads a new subscriber. */
export function readNew(
  { external_id, ...rest }: Static<typeof schemas.NewSubscriber>,
  problems: Problems,
): SubscriberInput {
  checkExternalId(external_id, problems)
  return { external_id, fields: readFields(rest, problems) }
}

/** Reads a subscriber whose external id stands in the path. */
export function readUpsert(
  { external_id, ...rest }: Static<typeof schemas.SubscriberUpsert>,
  problems: Problems,
) {
  return { external_id, fields: readFields(rest, problems) }
}

/** Reads a change. */
export function readChanges(
  { external_id, status, ...rest }: Static<typeof schemas.SubscriberPatch>,
  problems: Problems,
): ChangesInput {
  if (external_id !== undefined) checkExternalId(external_id, problems)
  const own = { ...(external_id !== undefined && { external_id }), ...(status && { status }) }
  return { fields: { ...readFields(rest, problems), ...own } }
}

/** Problems with an external id that stands in the path, and perhaps in the body once more. */
export function checkNamed(named: string, given: string | undefined, problems: Problems): void {
  check(schemas.ExternalName, { external_id: named }, problems)
  checkExternalId(named, problems)
  if (given === undefined || given === named) return
  const message = "The external id in the path is another one. Leave this field out."
  problems.add("external_id", "invalid", message)
}

/** A problem with a name that a path cannot hold. */
function checkExternalId(external_id: string, problems: Problems): void {
  const problem = reservedProblem(external_id)
  if (problem !== undefined) problems.add("external_id", "reserved", problem)
}

type FieldsInput = Omit<Static<typeof schemas.NewSubscriber>, "external_id">

function readFields(given: FieldsInput, problems: Problems): SubscriberFields {
  const { email, phone, name, avatar_url, locale, timezone, metadata, tags } = given
  if (phone != null) readPhone(phone, "phone", problems)
  if (avatar_url != null && !isWebAddress(avatar_url))
    problems.add(
      "avatar_url",
      "invalid",
      "The value must be a URL that begins with https: or http:.",
    )
  if (locale != null && !isLocale(locale))
    problems.add("locale", "invalid", "The value must be a language tag, such as en or de-AT.")
  if (timezone != null && !isTimeZone(timezone))
    problems.add("timezone", "invalid", "The value must be a time zone, such as Europe/Vienna.")
  if (metadata) checkMetadata(metadata, problems)
  const fields = {
    email: email == null ? email : readEmail(email, problems),
    ...{ phone, name, avatar_url, locale, timezone, metadata },
    tags: tags && [...new Set(tags)],
  }
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known) as SubscriberFields
}

function readEmail(text: string, problems: Problems): string | undefined {
  const mailbox = parseMailbox(text)
  return mailbox ? mailbox.email : problems.add("email", "invalid_email", notOneAddress(text))
}

function isWebAddress(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && !/\s/.test(text)
}
