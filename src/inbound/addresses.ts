import { eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { isOfProject, type ReceivingDomain, receivingDomain } from "../domains/receiving"
import { readLocalPart } from "../emails/token-addresses"
import { comparable, domainOf, isMailbox } from "../lib/address"
import type { MailTokenKind } from "../lib/mail-token"
import { messages } from "../messages/tables"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { routeFor } from "./route-match"

/** Whose mail it is, where the address alone says so. */
interface MailOwner {
  account_id: string
  project_id: string
}

/** Why mail to an address is taken. The owner of an address of the instance shows when it is read. */
export type InboundTarget =
  | { is: "receiving"; owner: ReceivingDomain }
  | { is: "token"; kind: MailTokenKind; message_id: string; owner: MailOwner }
  | { is: "instance"; owner: null }

/** Why it is not: `5.7.1` is no address of ours, `5.1.1` one of a domain for which no route takes it. */
export interface RecipientRefusal {
  enhanced: "5.7.1" | "5.1.1"
  text: string
}

export interface AddressParts {
  read: Reader
  secrets: Secrets
  /** The names of this server, in lower case: those of the MX records and of the greeting. */
  hosts: readonly string[]
}

/**
 * Local parts that take mail at every receiving domain and at the instance itself, in every mode: those
 * of RFC 2142 that concern mail, and those that reports are sent to (`dmarc` stands in our DNS records).
 */
const REPORT_ADDRESSES = new Set(["postmaster", "abuse", "dmarc", "tls-reports", "complaints"])

/** What MAIL and RCPT were made for: relaying through others. No address of ours looks like it. */
const RELAY_FORM = /[%!:"\\[\]]|@.*@/

const NOT_OURS = "This server does not take mail for this address."
const UNKNOWN = "There is no such address here."

/** Whether mail to this address is taken, as the client wrote it in RCPT. */
export async function inboundTarget(
  { read, secrets, hosts }: AddressParts,
  address: string,
): Promise<InboundTarget | RecipientRefusal> {
  if (address.toLowerCase() === "postmaster") return { is: "instance", owner: null } // RFC 5321, 4.5.1
  if (RELAY_FORM.test(address) || !isMailbox(address)) return { enhanced: "5.7.1", text: NOT_OURS }
  const domain = domainOf(address)
  const [local = ""] = comparable(address).split("@")
  const is_host = hosts.includes(domain)
  const owner = await receivingDomain(read, domain)
  const token = readLocalPart(secrets, local)
  if (token) {
    const [message] = await findMessage(read, { id: token.message_id })
    if (!message) return { enhanced: "5.7.1", text: NOT_OURS }
    const { account_id, project_id } = message
    if (is_host || (await isOfProject(read, project_id, domain))) {
      return { is: "token", ...token, owner: { account_id, project_id } }
    }
    return { enhanced: "5.7.1", text: NOT_OURS }
  }
  if (owner) return inReceiving(read, owner, comparable(address))
  if (is_host && REPORT_ADDRESSES.has(local)) return { is: "instance", owner: null }
  return { enhanced: "5.7.1", text: NOT_OURS }
}

async function inReceiving(
  read: Reader,
  owner: ReceivingDomain,
  address: string,
): Promise<InboundTarget | RecipientRefusal> {
  const [local = ""] = address.split("@")
  if (owner.mode === "catch_all" || REPORT_ADDRESSES.has(local)) return { is: "receiving", owner }
  const route = await routeFor(read, owner.project_id, address)
  return route ? { is: "receiving", owner } : { enhanced: "5.1.1", text: UNKNOWN }
}

const findMessage = prepared({ id: messages.id }, (db: Reader, slot) =>
  db
    .select({ account_id: messages.account_id, project_id: messages.project_id })
    .from(messages)
    .where(eq(messages.id, slot.id)),
)
