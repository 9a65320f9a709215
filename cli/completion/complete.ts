import { type Context, openContext } from "../context"
import { environment } from "../environment"
import { write } from "../output"
import { createProgram } from "../program"
import { profilesPath, readProfiles } from "../settings"
import { shortId } from "../table"
import { cleanLine } from "../terminal"
import { type Candidate, joinedFlag, type Suggestion, serverFlags, suggest } from "./candidates"
import { splitLine } from "./line"

/** A person waits with a finger on the key. */
const PATIENCE = "1500ms"
const MOST_IDS = 50

/**
 * Answers a shell: one candidate a line, with a tab before what it is about. Nothing is an answer too,
 * and whatever goes wrong is one: an error would stand in the middle of somebody's line.
 */
export async function complete([shell = "", ...given]: readonly string[]): Promise<void> {
  try {
    const { words, typed_before } =
      shell === "bash" ? withoutProgram(given[0] ?? "") : { words: given, typed_before: 0 }
    const suggestion = suggest(words, createProgram())
    const joined = joinedFlag(words)
    // A shell completes files as whole words: it finds none behind a joined flag.
    if (suggestion.is === "files") {
      return joined === "" ? await write(process.stdout, ":files\n") : undefined
    }
    const current = (words.at(-1) ?? "").slice(joined.length)
    const found = fitting(await candidates(suggestion, words), current)
    const lines = found.map(
      ({ value, about }) => `${(joined + value).slice(typed_before)}\t${cleanLine(about)}\n`,
    )
    await write(process.stdout, lines.join(""))
  } catch {
    // No server, no key, no such profile: there is nothing to offer.
  }
}

function withoutProgram(line: string) {
  const { words, typed_before } = splitLine(line)
  return { words: words.slice(1), typed_before }
}

interface Known extends Candidate {
  /** The whole of an id whose end is offered. */
  whole?: string
}

/** Those that begin as the word does; of ids the ends, unless the whole of one was begun. */
function fitting(found: readonly Known[], current: string): Candidate[] {
  const ends = found.filter(({ value }) => value.startsWith(current))
  if (ends.length > 0) return ends
  return found.flatMap(({ whole, about }) =>
    whole?.startsWith(current) ? [{ value: whole, about }] : [],
  )
}

async function candidates(suggestion: Suggestion, words: readonly string[]): Promise<Known[]> {
  if (suggestion.is === "words") return suggestion.words
  if (suggestion.is === "profiles") return profileNames()
  const context = openContext({ color: false, timeout: PATIENCE, ...serverFlags(words) })
  if (suggestion.is === "event_types") return await eventTypes(context, suggestion.families)
  return suggestion.is === "ids" ? await ids(context, suggestion) : []
}

async function ids(
  context: Context,
  { kind, above }: Suggestion & { is: "ids" },
): Promise<Known[]> {
  const { newestOf, wholeAbove } = await import("../endings")
  const client = context.client()
  const place = above === undefined ? "" : await wholeAbove(context, kind, above)
  const rows = await newestOf(client, kind, place, MOST_IDS)
  if (kind === "domain") return rows.map(({ label }) => ({ value: label, about: "" }))
  return rows.map(({ id, label }) => ({ value: shortId(id), about: label || id, whole: id }))
}

async function eventTypes(context: Context, with_families: boolean): Promise<Known[]> {
  type EventType = { type: string; category: string; description: string }
  const { data } = await context.client().get<EventType[]>("/v1/webhooks/events")
  const types = data.map(({ type, description }) => ({ value: type, about: description }))
  if (!with_families) return types
  const families = new Set(data.map(({ type }) => `${type.split(".")[0]}.*`))
  return [...types, ...[...families].map((value) => ({ value, about: "all types of this group" }))]
}

function profileNames(): Known[] {
  const { profiles } = readProfiles(profilesPath(environment))
  return Object.entries(profiles).map(([value, { url }]) => ({ value, about: url }))
}
