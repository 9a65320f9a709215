import { and, eq, exists, inArray, ne, notInArray, type SQL, type SQLWrapper } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { perStore, Recent } from "../store/cached"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import type { TemplateSources } from "../templates/render-templates-task"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed } from "../templates/usable-template"
import type { Message } from "./status-changes"
import { type Envelope, fanOutContents, messageContents } from "./tables"

/** Bytes: some thousand letters, more than are under way where delivery keeps up. */
const MOST = 4 * 1024 * 1024
const MOST_OF_ONE = 64 * 1024

/** Contents of messages that were just accepted. Most are delivered within the same second. */
export const recentContents = () =>
  new Recent<unknown>({ most: MOST, most_of_one: MOST_OF_ONE, sizeOf })

export const recentContentsOf = perStore(recentContents)

/** In bytes: most texts, and emails of a few lines. */
const SHORT = 2048

/**
 * Reads the short contents of messages that are about to be attempted and are not in memory. Together, because a
 * statement for each takes three times as long.
 */
export async function readAhead(db: Reader, list: Pick<Message, "id" | "stored_bytes">[]) {
  const contents = recentContentsOf(db)
  const isUnknown = ({ id, stored_bytes }: (typeof list)[0]) =>
    (stored_bytes ?? SHORT) < SHORT && !contents.has(id)
  const ids = list.filter(isUnknown).map(({ id }) => id)
  if (ids.length < 2) return
  for (const { message_id, content } of await findContents(db, { ids }))
    contents.keep(message_id, content)
}

const findContents = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(messageContents)
    .where(isAmong(db, messageContents.message_id, slot.ids)),
)

/** What a text takes beside its characters, an object beside its fields, and any other value. */
const TEXT_BYTES = 48
const OBJECT_BYTES = 128
const VALUE_BYTES = 8

/** In bytes, near enough: most of a short content is not its characters. */
function sizeOf(content: unknown): number {
  if (typeof content === "string") return TEXT_BYTES + Buffer.byteLength(content)
  if (typeof content !== "object" || content === null) return VALUE_BYTES
  let size = OBJECT_BYTES
  for (const name in content) size += sizeOf(content[name as keyof typeof content])
  return size
}

interface StoringMessage {
  project_id: string
  content: unknown
  envelope: Envelope | null
}

/** What a new message stores: its content, and its part of the files that it names. */
export interface StoredSize {
  content: number
  bytes: number
}

/** Of messages that enter together. A file that several of them name counts once, in equal parts. */
export function storedSizes(list: StoringMessage[]): StoredSize[] {
  const users = new Map<string, number>()
  const named = list.map(sizedFilesOf)
  for (const [at, files] of named.entries()) {
    for (const file of files) {
      const key = `${list[at]?.project_id} ${file.sha256}`
      users.set(key, (users.get(key) ?? 0) + 1)
    }
  }
  return list.map((message, at) => {
    const content = sizeOf(message.content)
    const files = (named[at] ?? []).map(({ sha256, size }) =>
      Math.ceil(size / (users.get(`${message.project_id} ${sha256}`) ?? 1)),
    )
    return { content, bytes: files.reduce((sum, size) => sum + size, content) }
  })
}

interface SizedFile {
  sha256: string
  size: number
}

const NO_SIZED_FILES: SizedFile[] = []

/** Each once. Attachments of mail that was submitted as bytes lie within those bytes. */
function sizedFilesOf({ envelope, content }: Omit<StoringMessage, "project_id">): SizedFile[] {
  const { submitted, attachments = NO_SIZED_FILES } = envelope ?? {}
  const of_content = isSizedFile(content)
    ? [{ sha256: content.file, size: content.size }]
    : NO_SIZED_FILES
  if (submitted) {
    const { sha256, size } = submitted
    return sha256 === null ? of_content : [{ sha256, size }, ...of_content]
  }
  if (attachments.length === 0) return of_content
  return [...new Map([...of_content, ...attachments].map((file) => [file.sha256, file])).values()]
}

export const filesOf = ({ id: message_id, envelope }: Message, content: unknown) =>
  sizedFilesOf({ envelope, content }).map(({ sha256 }) => ({ message_id, sha256 }))

/** Long texts are a file, which the content names in their place. */
const isSizedFile = (content: unknown): content is { file: string; size: number } =>
  typeof content === "object" && content !== null && "file" in content && "size" in content

/** Bytes that a row of a message keeps: themselves, or where many are, the file that holds them. */
export type Kept = Buffer | { file: string }

const MOST_IN_ROW = 512 * 1024

/** A row of megabytes would hold the event loop while it is written. */
export async function keptForm(bytes: Uint8Array, blobs: Blobs): Promise<Kept> {
  if (bytes.length > MOST_IN_ROW) return { file: (await blobs.put(bytes)).sha256 }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** No mail begins so, and no frame of Zstandard. */
const MARK = "file:"
const FORM = /^file:([0-9a-f]{64})$/

export const rowOf = (kept: Kept): Buffer =>
  "file" in kept ? Buffer.from(`${MARK}${kept.file}`) : kept

/** The name of the file where the row holds no more than that. */
export const fileIn = (row: Uint8Array): string | undefined =>
  row.length === MARK.length + 64 ? FORM.exec(Buffer.from(row).toString("latin1"))?.[1] : undefined

/** What every message of a fan-out is rendered with, as it was when the fan-out was created. */
export interface SharedValues {
  variables: Record<string, unknown>
  project: { id: string; name: string }
  /** The language of recipients without one of their own. */
  locale: string | null
  timezone: string
}

/** The texts of one channel in one language, and what they are rendered with. */
export interface SharedTexts extends SharedValues {
  texts: KeyedSources
}

/** What stands in the place of the content of a message whose texts are stored once for many. */
export interface SharedContent {
  /** The name of its texts among those of its fan-out. */
  shared: string
  /** The subscriber, as it was when the message was made. */
  subscriber: Record<string, unknown>
}

export const isShared = (content: unknown): content is SharedContent =>
  typeof content === "object" && content !== null && "shared" in content

/** The name of the values, beside those of texts, which begin with a channel. */
const VALUES = "values"

/** The name of a row without content: the frequency cap does not count the messages of the fan-out. */
const UNCOUNTED = "uncounted"

const MOST_READ = 64

interface SharedByMessages {
  values: SharedValues
  /** By channel and language (`email`, `email:de`). */
  texts: Map<string, TemplateSources>
  is_uncounted: boolean
}

export async function keepShared(
  tx: Tx,
  fan_out_id: string,
  { values, texts, is_uncounted }: SharedByMessages,
): Promise<void> {
  const contents = new Map<string, unknown>([[VALUES, values], ...texts])
  if (is_uncounted) contents.set(UNCOUNTED, {})
  const rows = [...contents].map(([name, content]) => ({ fan_out_id, name, content }))
  await tx.insert(fanOutContents).values(rows)
}

/** Whether the frequency cap passes over the messages of this fan-out; null is no fan-out. */
export function isUncounted(db: Reader, fan_out_id: SQLWrapper): SQL {
  const { fan_out_id: marked, name } = fanOutContents
  const rows = db.select({ name }).from(fanOutContents)
  return exists(rows.where(and(eq(marked, fan_out_id), eq(name, UNCOUNTED))))
}

/** What is removed before the fan-out itself: all but whether its messages count. */
export const isForRendering = ne(fanOutContents.name, UNCOUNTED)

const readTexts = perStore(() => new Map<string, Promise<SharedTexts | undefined>>())

/** The texts of this name; undefined where they are no longer stored. They never change, so they are remembered. */
export function sharedTexts(
  db: Reader,
  fan_out_id: string,
  name: string,
): Promise<SharedTexts | undefined> {
  const known = readTexts(db)
  const key = `${fan_out_id} ${name}`
  const found = known.get(key) ?? readShared(db, fan_out_id, name)
  known.delete(key) // and set again: the least used one is always the first
  known.set(key, found)
  const [oldest] = known.keys()
  if (known.size > MOST_READ && oldest !== undefined) known.delete(oldest)
  found.catch(() => known.delete(key))
  return found
}

async function readShared(db: Reader, fan_out_id: string, name: string) {
  const ours = and(
    eq(fanOutContents.fan_out_id, fan_out_id),
    inArray(fanOutContents.name, [VALUES, name]),
  )
  const rows = await db.select().from(fanOutContents).where(ours)
  const contentOf = (wanted: string) => rows.find((row) => row.name === wanted)?.content
  const [values, sources] = [contentOf(VALUES), contentOf(name)]
  if (!values || !sources) return undefined
  return { ...(values as SharedValues), texts: keyed(sources as TemplateSources) }
}

export interface SharedLanguages {
  names: ReadonlySet<string>
  /** The language of recipients without one of their own. */
  usual: string | null
}

export async function sharedLanguages(db: Reader, fan_out_id: string): Promise<SharedLanguages> {
  const { name } = fanOutContents
  const ours = eq(fanOutContents.fan_out_id, fan_out_id)
  const rows = await db
    .select({ name })
    .from(fanOutContents)
    .where(and(ours, notInArray(name, [VALUES, UNCOUNTED])))
  const [row] = await db
    .select()
    .from(fanOutContents)
    .where(and(ours, eq(name, VALUES)))
  const values = row?.content as SharedValues | undefined
  return { names: new Set(rows.map((one) => one.name)), usual: values?.locale ?? null }
}

/** The names of the texts of one channel. */
export const namesOf = ({ names }: SharedLanguages, channel: string): string[] =>
  [...names].filter((name) => name === channel || name.startsWith(`${channel}:`))

/** The name of the texts for a recipient: in exactly this language, in its base, else the template's own. */
export function nameFor(
  { names, usual }: SharedLanguages,
  channel: string,
  locale: string | null,
): string {
  for (
    let tag = (locale ?? usual)?.toLowerCase() ?? "";
    tag !== "";
    tag = tag.slice(0, Math.max(0, tag.lastIndexOf("-")))
  ) {
    const name = `${channel}:${tag}`
    if (names.has(name)) return name
  }
  return channel
}
