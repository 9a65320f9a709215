import type { Secrets } from "../core/secrets"
import {
  type MailTokenKind,
  markedId,
  readMarkedId,
  readTokenAddress,
  tokenAddress,
} from "../lib/mail-token"

/** What the MAC of each kind is made for. Addresses are in mail that left long ago: never change it. */
const PURPOSES: Record<MailTokenKind, string> = {
  b: "return path",
  r: "reply address",
}

const macsOf = (secrets: Secrets) => (kind: MailTokenKind, text: string) =>
  secrets.mac(PURPOSES[kind], text)

/** The local part of the address for one kind of mail about this message. */
export const localPartFor = (secrets: Secrets, kind: MailTokenKind, message_id: string): string =>
  tokenAddress(kind, message_id, macsOf(secrets))

/** The message that mail to this local part is about, if the local part is one that we made. */
export const readLocalPart = (secrets: Secrets, local: string) =>
  readTokenAddress(local, macsOf(secrets))

/** Carried by every email that leaves, so that a report which quotes the header names the message. */
export const EMAIL_ID_HEADER = "X-Svc-Email-Id"

const HEADER_PURPOSE = "email id header"

export const emailIdHeader = (secrets: Secrets, message_id: string): string =>
  markedId(message_id, (text) => secrets.mac(HEADER_PURPOSE, text))

/** The message that a quoted header names; undefined where its MAC is wrong. */
export const readEmailIdHeader = (secrets: Secrets, value: string): string | undefined =>
  readMarkedId(value, (text) => secrets.mac(HEADER_PURPOSE, text))
