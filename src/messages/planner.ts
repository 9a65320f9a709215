import type { TSchema } from "@sinclair/typebox"
import type { ApiError, Problems } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { Tx } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import type { TemplateSources } from "../templates/render-templates-task"
import type { MessageEntry } from "./accept"
import type { SharedLanguages } from "./contents"
import type { Message } from "./status-changes"
import type { ChannelName, NewMessage } from "./tables"

/** Why a recipient of a fan-out gets no message (contract 43, section 2). */
export const SKIP_REASONS = [
  "no_address",
  "preference",
  "suppressed",
  "frequency_cap",
  "quota",
] as const

export type SkipReason = (typeof SKIP_REASONS)[number]

/** What a publish may say in one channel: `content.<channel>` of its request. */
export interface PublishContent {
  schema: TSchema
  read(given: unknown, problems: Problems): unknown
}

export interface ContentQuery {
  /** The id or name of a template; null where `content` says it. */
  template: string | null
  content: unknown
}

/** What all messages of a fan-out have in common in one channel. */
export interface PreparedChannel {
  /** By channel and language (`email`, `email:de`). */
  texts: Map<string, TemplateSources>
  /** Refuses what else may be refused. What it gives is stored with the fan-out. */
  freeze(): Promise<unknown>
}

/** What a fan-out needs for the messages that it makes, frozen when it was created: by channel, and for all of them. */
export interface FrozenIntent extends Partial<Record<ChannelName, unknown>> {
  category: string | null
  exclude: string[]
  respect_preferences: boolean
  api_key_id: string | null
}

interface PlannedFanOut {
  id: string
  account_id: string
  project_id: string
  topic_key: string | null
  intent: FrozenIntent
}

export interface NextRecipients {
  fan_out: PlannedFanOut
  languages: SharedLanguages
  at: string
  /** The members in their order, where a planner needs them. Until the transaction, others may take their place. */
  members(): Promise<AudienceMember[]>
}

export interface ChannelPlanner {
  /** The texts of a fan-out as they are now. Throws what a send of them would throw. */
  prepare(caller: Caller, asked: ContentQuery): Promise<PreparedChannel>
  /** Throws where the project may not send what was frozen now. */
  requireReady(caller: Caller, frozen: unknown): Promise<void>
  /** What a transaction may not wait for: texts from other threads, and what is known of the recipients. */
  begin(next: NextRecipients): Promise<ChunkPlan>
}

/** What is planned for some recipients. It asks nothing: it runs inside of their transaction. */
export interface ChunkPlan {
  /** Whether all is known that the message to this member needs. */
  isReady(member: AudienceMember): boolean
  /** Where it would go, in the form in which addresses compare; null where the member has no such address. */
  addressOf(member: AudienceMember): string | null
  isReachable(member: AudienceMember): boolean
  plan(caller: Caller, member: AudienceMember, decision: SendDecision): NewMessage[] | SkipReason
  /** In the place of `accept`, where the channel writes more with its messages. */
  accept?(tx: Tx, entries: MessageEntry[]): Promise<(Pick<Message, "id"> | ApiError)[]>
}

export type Planners = Partial<Record<ChannelName, ChannelPlanner>>
