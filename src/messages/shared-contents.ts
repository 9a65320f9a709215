import { and, eq, exists, inArray, ne, notInArray, type SQL, type SQLWrapper } from "drizzle-orm"
import { perStore } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import type { TemplateSources } from "../templates/render-templates-task"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed } from "../templates/usable-template"
import { fanOutContents } from "./tables"

/** What every message of a fan-out is rendered with, as it was when the fan-out was created. */
export interface SharedValues {
  variables: Record<string, unknown>
  project: { id: string; name: string }
  /** The language of recipients without one of their own. */
  locale: string | null
  /** The zone of recipients without one of their own. */
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

/** Texts of these are in memory: more fan-outs are not delivered at once. */
const MOST_READ = 64

/** What the messages of a fan-out share. */
export interface SharedByMessages {
  values: SharedValues
  /** By channel and language (`email`, `email:de`). */
  texts: Map<string, TemplateSources>
  /** The frequency cap does not count the messages. */
  is_uncounted: boolean
}

export async function keepShared(
  tx: Tx,
  fan_out_id: string,
  { values, texts, is_uncounted }: SharedByMessages,
): Promise<void> {
  const rows = [...texts].map(([name, content]) => ({
    fan_out_id,
    name,
    content: content as unknown,
  }))
  const mark = is_uncounted ? [{ fan_out_id, name: UNCOUNTED, content: {} }] : []
  await tx
    .insert(fanOutContents)
    .values([{ fan_out_id, name: VALUES, content: values }, ...rows, ...mark])
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

/** The languages that the texts of a fan-out are in. */
export interface SharedLanguages {
  /** The names of the texts. */
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
