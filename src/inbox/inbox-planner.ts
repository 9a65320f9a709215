import { type Static, Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { log } from "../core/log"
import { isPast } from "../core/time"
import { readTime } from "../http/page"
import type { MessageEntry } from "../messages/accept"
import { fanOutBumps } from "../messages/change"
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
import { bumpAll } from "../store/counters"
import type { Tx } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { SOURCE_BYTES } from "../templates/limits"
import { acceptNotes, newNote } from "./accept"
import { sharedIdOf } from "./kept-contents"
import {
  checkOthers,
  collapseField,
  END_PASSED,
  expiresField,
  NO_NUL,
  type NoteTexts,
  optional,
  otherFields,
  othersOf,
  textsOf,
} from "./note-fields"
import type { InboxRules } from "./prepare"
import { inlineNote, requireNote } from "./render-note"

const IN_APP = "in_app" as const

const source = t.String({ minLength: 1, maxLength: SOURCE_BYTES, pattern: NO_NUL })

const NoteContent = t.Object(
  {
    title: source,
    body: optional(source),
    action_url: optional(source),
    action_label: optional(source),
    ...otherFields,
    collapse_key: collapseField,
    expires_at: expiresField,
  },
  { description: "`title`, `body`, `action_url` and `action_label` are Handlebars." },
)

/** What all messages of a fan-out have in common beside their texts. */
interface FrozenNote {
  template: Envelope["template"] | null
  others: ReturnType<typeof othersOf>
  collapse_key: string | null
  expires_at: string | null
}

interface PublishedNote extends Omit<FrozenNote, "template"> {
  texts: NoteTexts
}

const PLACE = "content.in_app."
const END = `${PLACE}expires_at`

export const inboxContent: PublishContent = {
  schema: NoteContent,
  read(given, problems): PublishedNote {
    const content = given as Static<typeof NoteContent>
    checkOthers(content, problems, PLACE)
    const { collapse_key = null, expires_at } = content
    const end = expires_at == null ? undefined : readTime(END, expires_at, problems)
    return {
      ...{ texts: textsOf(content), others: othersOf(content), collapse_key },
      expires_at: end ?? null,
    }
  },
}

const TEXTS: TextsOfContent = {
  channel: IN_APP,
  inline: (content) => inlineNote((content as PublishedNote).texts),
  /** What says the same to each recipient is known now. */
  require(sources) {
    if (!isPersonal(sources)) requireNote(plainTexts(sources))
  },
}

export const inboxPlanner = ({ templates }: InboxRules): ChannelPlanner => ({
  async prepare({ project_id }, asked) {
    const { texts, template } = await publishTexts(templates, project_id, asked, TEXTS)
    const said = asked.content as PublishedNote | undefined
    const { others = othersOf({}), collapse_key = null, expires_at = null } = said ?? {}
    // Not while it is read: a repeated `dedupe_key` has the first publish as its answer, also later.
    if (expires_at !== null && isPast(expires_at)) throw invalid(END, "invalid", END_PASSED)
    const frozen: FrozenNote = { template, others, collapse_key, expires_at }
    return { texts, freeze: async () => frozen }
  },
  requireReady: async () => {},
  begin: async (next) =>
    noteChunk({ ...next, said: await renderAll(templates, IN_APP, next, requireNote) }),
})

interface NoteChunk extends Omit<NextRecipients, "members"> {
  /** By subscriber; where all of a language get the same, by the name of their texts. */
  said: ReadonlyMap<string, NoteTexts | MessageRefusal>
}

function noteChunk(chunk: NoteChunk): ChunkPlan {
  const { said, languages } = chunk
  return {
    isReady: ({ id, locale }) => said.has(id) || said.has(nameFor(languages, IN_APP, locale)),
    addressOf: ({ id }) => id,
    isReachable: () => true,
    plan: ({ project_settings: { sandbox } }, member, decision) => [
      messageTo(chunk, member, decision, sandbox),
    ],
    accept: acceptRendered,
  }
}

function messageTo(
  { fan_out, at, said, languages }: NoteChunk,
  member: AudienceMember,
  decision: SendDecision,
  sandbox: boolean,
): NewMessage {
  const { account_id, project_id, intent, topic_key } = fan_out
  const { category, api_key_id, respect_preferences } = intent
  const { template, others, collapse_key, expires_at } = intent.in_app as FrozenNote
  const name = nameFor(languages, IN_APP, member.locale)
  const own = said.get(member.id)
  const found = own ?? said.get(name) ?? NOTHING
  const refused = "reason" in found ? found : undefined
  const texts = "reason" in found ? NOTHING : found
  const message = newNote({
    ...{ account_id, project_id, api_key_id, sandbox, category, tags: [], metadata: {} },
    ...{ stream: "broadcast", source: "topic", fan_out_id: fan_out.id },
    template_id: template?.id ?? null,
    subscriber: member,
    envelope: {
      topic: topic_key ?? "",
      decision: keptOf(decision),
      ...(template && { template }),
      ...(!respect_preferences && { ignores_preferences: true as const }),
    },
    note: {
      content: { ...texts, ...others },
      shared_id: own ? null : sharedIdOf(fan_out.id, name),
      ...{ collapse_key, expires_at },
    },
  })
  return { ...message, created_at: at, ...(refused && { refused }) }
}

const NOTHING = textsOf({})

/** An inbox has no failed messages: one that cannot be rendered is counted as failed, and is nowhere. */
async function acceptRendered(tx: Tx, entries: MessageEntry[]) {
  const rendered = entries.filter(({ message }) => !message.refused)
  const answers = await acceptNotes(tx, rendered)
  const answerOf = new Map(rendered.map((entry, at) => [entry, answers[at]]))
  const lost = entries.flatMap(({ message }) => (message.refused ? [message] : []))
  await bumpAll(
    tx,
    lost.flatMap(({ channel, fan_out_id = null }) =>
      fanOutBumps({ channel, fan_out_id, status: "queued" }, "failed"),
    ),
  )
  const [first] = lost
  if (first) {
    const { fan_out_id: publish_id, refused } = first
    tx.afterCommit(() => log.warn("inbox messages of a publish failed", { publish_id, ...refused }))
  }
  return entries.map((entry) => answerOf.get(entry) ?? { id: entry.message.id })
}
