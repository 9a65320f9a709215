import { eq } from "drizzle-orm"
import { type FoundLink, linkOfLocalPart } from "../consents/unsubscribe-links"
import { type MailTokenKind, readLocalPart } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import { isOfProject, type ReceivingDomain, receivingDomain } from "../domains/receiving"
import { withDefaults } from "../identity/caller"
import { projects } from "../identity/tables"
import { comparable, domainOf, sendableForm } from "../lib/address"
import { messages } from "../messages/tables"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { routeFor } from "./inbound-route"

/** Whose mail it is, where the address alone says so. */
interface MailOwner {
  account_id: string
  project_id: string
}

/** Why mail to an address is taken. The owner of an address of the instance shows when it is read. */
export type InboundTarget =
  | { is: "receiving"; owner: ReceivingDomain }
  | { is: "token"; kind: MailTokenKind; message_id: string; owner: MailOwner }
  | { is: "unsubscribe"; link: FoundLink; owner: MailOwner }
  | { is: "instance"; owner: null }

/** Why it is not: `5.7.1` is no address of ours, `5.1.1` one of a domain for which no route takes it. */
interface RecipientRefusal {
  enhanced: "5.7.1" | "5.1.1"
  text: string
}

export interface AddressParts {
  read: Reader
  secrets: Secrets
  /** The names of this server, in lower case: those of the MX records and of the greeting. */
  hosts: readonly string[]
  /** A domain of this machine alone, all of whose mail is for the first project. */
  own_domain?: string | undefined
}

/**
 * Local parts that take mail at every receiving domain and at the instance itself, in every mode: those
 * of RFC 2142 that concern mail, and those that reports are sent to (`dmarc` stands in our DNS records).
 */
const REPORT_ADDRESSES = new Set(["postmaster", "abuse", "dmarc", "tls-reports", "complaints"])

/** Whether mail to this address of the instance, or of a receiving domain, may be a report. */
export const isReportAddress = (address: string): boolean =>
  REPORT_ADDRESSES.has(comparable(address).split("@", 1)[0] ?? "")

/** Whether the address itself is a proof: only a message of ours told it. */
export const isProof = ({ is }: InboundTarget): boolean => is === "token" || is === "unsubscribe"

/** What MAIL and RCPT were made for: relaying through others. Quotes around a local part relay nothing. */
const RELAY_FORM = /[%!:"\\[\]]|@.*@/
const QUOTES = /^"([^"\\]*)"(?=@)/

const NONE_OF_OURS: RecipientRefusal = {
  enhanced: "5.7.1",
  text: "This server does not take mail for this address.",
}
const UNKNOWN = "There is no such address here."

/** Whether mail to this address is taken, as the client wrote it in RCPT. */
export async function inboundTarget(
  { read, secrets, hosts, own_domain }: AddressParts,
  address: string,
): Promise<InboundTarget | RecipientRefusal> {
  if (address.toLowerCase() === "postmaster") return { is: "instance", owner: null } // RFC 5321, 4.5.1
  const is_relayed = RELAY_FORM.test(address.replace(QUOTES, "$1"))
  if (is_relayed || sendableForm(address) === undefined) return NONE_OF_OURS
  const domain = domainOf(address)
  const [local = ""] = comparable(address).split("@")
  const is_host = hosts.includes(domain)
  const is_own = domain === own_domain
  const owner = is_own ? await ownOf(read, domain) : await receivingDomain(read, domain)
  const made = await madeAddress(read, secrets, local)
  if (made) {
    const { owner: sender } = made
    const is_here =
      is_host || is_own || (sender && (await isOfProject(read, sender.project_id, domain)))
    return sender && is_here ? { ...made, owner: sender } : NONE_OF_OURS
  }
  if (owner) return inReceiving(read, owner, comparable(address))
  if (is_host && REPORT_ADDRESSES.has(local)) return { is: "instance", owner: null }
  return NONE_OF_OURS
}

/** Undefined before there is a project. */
async function ownOf(read: Reader, domain: string): Promise<ReceivingDomain | undefined> {
  const [owner] = await firstProject(read)
  if (!owner) return undefined
  const { id, settings } = projects
  const ours = read.select({ settings }).from(projects).where(eq(id, owner.project_id))
  return { domain, ...owner, mode: withDefaults((await ours)[0]?.settings ?? {}).inbound.mode }
}

/** What an address that was made for mail of ours is about. Its owner is null where that is gone. */
async function madeAddress(read: Reader, secrets: Secrets, local: string) {
  const link = await linkOfLocalPart(read, local)
  if (link) {
    const { account_id, project_id } = link
    return { is: "unsubscribe" as const, link, owner: { account_id, project_id } }
  }
  const token = readLocalPart(secrets, local)
  if (!token) return undefined
  const [owner = null] = await findMessage(read, { id: token.message_id })
  return { is: "token" as const, ...token, owner }
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
