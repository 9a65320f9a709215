import type { TSchema } from "@sinclair/typebox"
import type { Settings } from "../core/config"
import type { NetRequest } from "../core/net"
import type { OutgoingMessage, Provider } from "./provider"

export type ProviderChannel = "email" | "push" | "sms"

export const PROVIDER_KINDS = ["email_provider", "sms_provider", "push_provider"] as const

/** The same on the wire and in the database. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number]

export const channelOf = (kind: ProviderKind): ProviderChannel =>
  kind.replace(/_provider$/, "") as ProviderChannel

/** Credentials as they are stored; each provider knows its own fields. */
export type Credentials = Record<string, unknown>

/** One field of a provider's credentials. Forms, masks, SPF and flags of the command line follow from it. */
interface CredentialField {
  /** `t.Optional(…)` for a field that may be absent. */
  schema: TSchema
  /** What it is, in a few words. */
  about: string
  /** What the help of the command line calls its value; the last word of its name without it. */
  value?: string
  /** Answers show only its last four characters. */
  secret?: true
  /** The command line reads it from stdin, or asks for it, when this other field is given. */
  asked_with?: string
  /** Where the caller gives none. */
  fallback?: string | number
  /** Also stored in the open, because SPF records are made from it. */
  is_public?: true
}

interface CredentialFault {
  field: string
  code: string
  message: string
}

/** How SPF names a host, and this machine. */
interface SpfNames {
  machine: string[]
  of(host: string): string
}

export type IdentityStatus = "pending" | "success" | "failed"

/** What a provider that keeps identities of its own thinks of a sending domain. */
export interface SenderIdentity {
  provider_identity_status: IdentityStatus
  provider_dkim_status: IdentityStatus
  /** Its CNAMEs: `<selector>._domainkey.<domain>` leads to `target`. None for keys of others. */
  dkim_aliases: { selector: string; target: string }[]
}

/** What a provider says later about one recipient, in the words of our events. */
export interface ProviderNotice {
  type: "delivered" | "bounced" | "complained" | "failed"
  recipient_email: string
  bounce_type?: "Permanent" | "Transient"
  bounce_subtype?: string
  complaint_feedback_type?: string
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
}

/** What one callback says about one message. */
export interface ProviderReport {
  provider_message_id: string
  notices: ProviderNotice[]
}

/** How the senders of callbacks are reached, where their word must be checked. */
export interface CallbackNetwork {
  /** PEM of the authority to trust instead of the well-known ones. */
  ca?: string | undefined
  /** Networks where they may be, besides the public internet. */
  allow_private: readonly string[]
  /** Where they are not at their usual port and their public address. */
  port?: number
  resolver?: NetRequest["resolver"]
}

/** The callbacks of a provider: `POST /v1/callbacks/<channel>/<provider>/<token>`. */
export interface ProviderCallbacks<Body, Context> {
  body: TSchema
  example: object
  about: string
  /**
   * The account that speaks, if the signature is right; otherwise undefined. Throws ApiError
   * `provider_error` where it cannot be checked now.
   */
  verify(body: Body, network: CallbackNetwork, context: Context): Promise<string | undefined>
  /** Undefined where nothing changes here. A subscription is confirmed here too. */
  read(body: Body, network: CallbackNetwork, context: Context): Promise<ProviderReport | undefined>
}

/** Judges where a host that a project names leads; resolves with its address. */
export type Reach = (host: string, port: number) => Promise<string>

/**
 * A provider: everything that the rest knows about it. `Context` is what its channel gives to each of
 * its providers. List, forms, sealing, masks, SPF, banner, flags and docs are made from it.
 */
export interface ProviderDescriptor<
  Access extends object = object,
  Context = unknown,
  Message extends OutgoingMessage = OutgoingMessage,
  Body = unknown,
> {
  readonly name: string
  readonly channel: ProviderChannel
  /** As a person names it: `Amazon SES`. */
  readonly about: string
  /** The statuses of a message, for the guide. */
  readonly reports: string
  /** Flags of `belfry providers set <name>`, as its help shows them. */
  readonly example?: string
  readonly credentials: Readonly<Record<string, CredentialField>>
  /** What no single field shows. */
  judge?(access: Access): CredentialFault | undefined
  /** The host that the credentials name: a project's may not lead to a private network. */
  destination?(access: Access): { field: string; host: string; port: number }
  /** Mechanisms for the SPF records of sending domains. `open_fields` are those that are `is_public`. */
  spf?(open_fields: Credentials, names: SpfNames): string[] | undefined
  /** The identity of a sending domain, made if there is none. Rejects where it cannot be asked. */
  identity?(access: Access, context: Context, domain: string): Promise<SenderIdentity>
  readonly callbacks?: ProviderCallbacks<Body, Context>
  /** The credentials that the operator's settings give to the instance's own provider. */
  fromSettings?(settings: Settings): Access
  /** Where it delivers, for the banner of `up`. */
  banner?(access: Access): string
  /** Why it cannot be used on this instance. */
  obstacle?(context: Context): string | undefined
  /**
   * Opened once for the instance and all projects. Its servers are those of the recipients: they have
   * limits of their own, and trouble with one of them is no trouble with the provider.
   */
  readonly is_shared?: true
  /** `reach` is absent for the instance's own provider, which may be anywhere. */
  open(access: Access, context: Context, reach?: Reach): Provider<Message>
}

/** The instance's own provider of a channel, by the operator's settings. */
export interface OwnProvider {
  descriptor: ProviderDescriptor
  credentials: object
}

/** The providers of this process, and what the operator allows them. */
export interface ProviderEnvironment {
  table: readonly ProviderDescriptor[]
  contexts: Partial<Record<ProviderChannel, unknown>>
  own: Partial<Record<ProviderChannel, OwnProvider>>
  /** Networks where a host that a project names may be, besides the public internet. */
  allow_private: readonly string[]
  network: CallbackNetwork
}

export const findDescriptor = (
  table: readonly ProviderDescriptor[],
  kind: ProviderKind,
  name: string,
): ProviderDescriptor | undefined =>
  table.find((one) => one.name === name && one.channel === channelOf(kind))

/** The instance's own provider of email, as the settings name it. */
export function ownEmailProvider(
  table: readonly ProviderDescriptor[],
  settings: Settings,
): OwnProvider {
  const name = settings["delivery.provider"]
  const descriptor = findDescriptor(table, "email_provider", name)
  if (!descriptor?.fromSettings) throw new Error(`There is no provider ${name} for an instance.`)
  return { descriptor, credentials: descriptor.fromSettings(settings) }
}
