import type { Static } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import type { DomainPatch, NewDomain } from "./domains"
import { isSelector } from "./key-rotation"
import { isLabels, readDomain } from "./names"
import type { RecordTargets } from "./record-targets"
import type * as schemas from "./schemas"

const NO_LABEL =
  "The value must have only letters, digits and hyphens, such as bounce, and at most 63 characters."
/** Of the embedded mailbox, which needs no records. */
const MAILBOX = "mailbox.test"

const RETURN_PATH = "bounce"
const SELECTOR = "svc1"

/** What a domain is made of. Names become lower case and A-labels. */
export function readNewDomain(
  given: Static<typeof schemas.NewDomain>,
  problems: Problems,
): NewDomain {
  const read = readDomain(given.domain)
  if ("reason" in read) problems.add("domain", "invalid", read.reason)
  else if (read.name === MAILBOX)
    problems.add(
      "domain",
      "invalid",
      "mailbox.test is the embedded mailbox. It is always verified; do not add it.",
    )
  const dkim_selector = (given.dkim_selector ?? SELECTOR).toLowerCase()
  if (!isSelector(dkim_selector)) {
    problems.add(
      "dkim_selector",
      "invalid",
      "The value must be one label of letters, digits and hyphens, such as svc2.",
    )
  }
  const parts = readPatch(given, problems)
  const { return_path = RETURN_PATH, tracking_subdomain = null, receiving = false } = parts
  refuseSame(return_path, tracking_subdomain, problems)
  const domain = "name" in read ? read.name : ""
  return { domain, receiving, tracking_subdomain, return_path, dkim_selector }
}

/** Two records of one name would shut each other out: a CNAME stands alone. */
export function refuseSame(return_path: string, tracking: string | null, problems: Problems) {
  if (return_path !== tracking) return
  problems.add("tracking_subdomain", "invalid", "The value must differ from return_path.")
}

/**
 * A record must not lead to a server that does not run: mail would be lost. Throws 422 with the code
 * `not_available` of the field.
 */
export function refuseUnavailable({ receives }: RecordTargets, wanted: DomainPatch) {
  if (!wanted.receiving || receives) return
  const problems = new Problems()
  const text =
    "This server does not receive mail (smtp.inbound.enabled). Set it to false, or leave it out."
  problems.add("receiving", "not_available", text)
  problems.throwIfAny()
}

/** Reads what of a domain may change. */
export function readPatch(
  given: Static<typeof schemas.DomainPatch>,
  problems: Problems,
): DomainPatch {
  const { receiving, return_path, tracking_subdomain } = given
  const parts: DomainPatch = {}
  if (receiving !== undefined) parts.receiving = receiving
  if (return_path !== undefined) {
    parts.return_path = readLabels("return_path", return_path, problems)
  }
  if (tracking_subdomain === null) parts.tracking_subdomain = null
  else if (tracking_subdomain !== undefined) {
    parts.tracking_subdomain = readLabels("tracking_subdomain", tracking_subdomain, problems)
  }
  return parts
}

function readLabels(field: string, given: string, problems: Problems): string {
  const text = given.toLowerCase()
  if (!isLabels(text)) problems.add(field, "invalid", NO_LABEL)
  return text
}
