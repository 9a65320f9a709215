import { type Static, Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { deviceCounts, devicesOf } from "../devices/find-device"
import type { DeviceRow } from "../devices/tables"
import type { Caller } from "../identity/caller"
import { nameFor } from "../messages/contents"
import { keptOf } from "../messages/decided"
import type { ChannelPlanner, ChunkPlan, NextRecipients, PublishContent } from "../messages/planner"
import {
  isPersonal,
  plainTexts,
  publishTexts,
  renderAll,
  type TextsOfContent,
} from "../messages/shared-texts"
import type { Envelope, MessageRefusal, NewMessage } from "../messages/tables"
import type { Reader } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { SOURCE_BYTES } from "../templates/limits"
import { tooLargeFor, tooLargeText } from "./payloads"
import { configuredProviders, isReady, NOT_CONFIGURED, newPush, type PushRules } from "./prepare"
import {
  checkOthers,
  NO_TEXT,
  type OtherPushContent,
  otherFields,
  othersOf,
  type PushTexts,
  sourceFields,
  textsOf,
} from "./push-fields"
import { inlinePush, requirePush } from "./render-push"
import { isReached } from "./targets"

const PUSH = "push" as const

const PublishedFields = t.Object(
  { ...sourceFields(SOURCE_BYTES), ...otherFields },
  { description: "`title`, `body`, `url`, `image_url` and the values of `data` are Handlebars." },
)

/** What all messages of a fan-out have in common beside their texts. */
interface FrozenPush {
  template: Envelope["template"] | null
  others: OtherPushContent
  ttl_seconds: number | null
}

interface PublishedPush extends Omit<FrozenPush, "template"> {
  texts: PushTexts
}

const PLACE = "content.push."

export const pushContent: PublishContent = {
  schema: PublishedFields,
  read(given, problems): PublishedPush {
    const content = given as Static<typeof PublishedFields>
    const { ttl_seconds = null, title, body } = content
    const is_silent = title == null && body == null
    if (is_silent && !content.content_available) problems.add(`${PLACE}title`, "required", NO_TEXT)
    checkOthers(content, problems, PLACE)
    return { texts: textsOf(content), others: othersOf(content, is_silent), ttl_seconds }
  },
}

const TEXTS: TextsOfContent = {
  channel: PUSH,
  inline: (content) => inlinePush((content as PublishedPush).texts),
  /** What says the same to each recipient is known now. */
  require(sources) {
    const has_text = sources.texts.some(({ part }) => part === "title" || part === "body")
    if (!isPersonal(sources)) requirePush(plainTexts(sources), !has_text)
  },
}

export const pushPlanner = (rules: PushRules): ChannelPlanner => ({
  async prepare(caller, asked) {
    const { texts, template } = await publishTexts(rules.templates, caller.project_id, asked, TEXTS)
    const said = asked.content as PublishedPush | undefined
    const { others = othersOf({}, false), ttl_seconds = null } = said ?? {}
    const freeze = async (): Promise<FrozenPush> => {
      await requireProviders(rules.read, caller)
      return { template, others, ttl_seconds }
    }
    return { texts, freeze }
  },
  requireReady: (caller) => requireProviders(rules.read, caller),
  begin: (next) => begin(rules, next),
})

/** Throws 400 `push_not_configured`, as a send does. */
async function requireProviders(db: Reader, { project_id, project_settings }: Caller) {
  if (project_settings.sandbox || (await configuredProviders(db, project_id)).size > 0) return
  fail("push_not_configured", NOT_CONFIGURED, { channel: PUSH })
}

/** Devices of one chunk, if they are of more than one member. The next chunk begins with the next one. */
export const MOST_DEVICES = 500

/** The first members with no more devices than that together. */
async function firstOf(db: Reader, project_id: string, members: AudienceMember[]) {
  const names = members.map(({ external_id }) => external_id)
  const counts = await deviceCounts(db, project_id, names)
  let total = 0
  const end = members.findIndex(({ external_id }, at) => {
    total += counts.get(external_id) ?? 0
    return at > 0 && total > MOST_DEVICES
  })
  return end === -1 ? members : members.slice(0, end)
}

/** The devices of all of these members are read at once, before the transaction. */
async function begin({ read, templates }: PushRules, next: NextRecipients): Promise<ChunkPlan> {
  const { project_id, intent } = next.fan_out
  const { content_available } = (intent.push as FrozenPush).others
  const members = await firstOf(read, project_id, await next.members())
  const names = members.map(({ external_id }) => external_id)
  const found = (await devicesOf(read, project_id, names)).filter((one) => isReached(one, false))
  const byUser = Map.groupBy(found, ({ user_id }) => user_id)
  const devices = new Map(members.map((one) => [one.id, byUser.get(one.external_id) ?? []]))
  const configured = await configuredProviders(read, project_id)
  const said = await renderAll(
    templates,
    PUSH,
    { ...next, members: async () => members },
    (texts) => requirePush(texts, content_available),
  )
  return pushChunk({ ...next, devices, configured, said })
}

interface PushChunk extends Omit<NextRecipients, "members"> {
  /** By subscriber. */
  devices: ReadonlyMap<string, DeviceRow[]>
  configured: ReadonlySet<string>
  /** By subscriber; where all of a language get the same, by the name of their texts. */
  said: ReadonlyMap<string, PushTexts | MessageRefusal>
}

function pushChunk(chunk: PushChunk): ChunkPlan {
  const { said, languages, devices, configured } = chunk
  return {
    isReady: ({ id, locale }) =>
      devices.has(id) && (said.has(id) || said.has(nameFor(languages, PUSH, locale))),
    addressOf: ({ id }) => devices.get(id)?.[0]?.device_id ?? null,
    isReachable: () => configured.size > 0,
    plan: (caller, member, decision) => messagesTo(chunk, caller, member, decision),
  }
}

/** One for each device. A text that cannot be rendered, or is too large, is accepted and fails at once. */
function messagesTo(
  { fan_out, at, said, languages, devices, configured }: PushChunk,
  { project_settings: { sandbox } }: Caller,
  { id: subscriber_id, locale }: AudienceMember,
  decision: SendDecision,
): NewMessage[] {
  const { account_id, project_id, intent, topic_key } = fan_out
  const { category, api_key_id, respect_preferences } = intent
  const { template, others, ttl_seconds } = intent.push as FrozenPush
  const texts = said.get(subscriber_id) ?? said.get(nameFor(languages, PUSH, locale)) ?? {}
  const unsaid = "reason" in texts ? texts : undefined
  const content = { ...("reason" in texts ? {} : texts), ...others }
  const theirs = devices.get(subscriber_id) ?? []
  const batch_id = theirs.length > 1 ? newId() : null
  return theirs.map((device) => {
    const large = tooLargeFor(content, [device.provider])
    const refused = large ? { reason: "payload_too_large", text: tooLargeText(large) } : unsaid
    const message = newPush(device, {
      ...{ account_id, project_id, api_key_id, sandbox, category, batch_id, content, ttl_seconds },
      scheduled_at: refused ? null : decision.deferred_until,
      ...{ fan_out_id: fan_out.id, subscriber_id, source: "topic", stream: "broadcast" },
      is_ready: sandbox || isReady(device, configured),
      ...(refused && { refused }),
      envelope: {
        ...(category !== null && { category }),
        topic: topic_key ?? "",
        decision: keptOf(decision),
        ...(template && { template }),
        ...(!respect_preferences && { ignores_preferences: true as const }),
      },
      template_id: template?.id ?? null,
    })
    return { ...message, created_at: at }
  })
}
