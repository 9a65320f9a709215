import type { Command } from "commander"
import { type OperationName, paramsOf } from "../../src/client/client"
import type { Client } from "./client"
import { type Context, openContext } from "./context"
import { environment } from "./environment"
import { exits, Failure, usage } from "./errors"
import { readLatest } from "./feed"
import type { GlobalFlags } from "./flags"
import {
  cachedIds,
  type IdKind,
  type IdKindName,
  id_kinds,
  isShortId,
  kindOfArgument,
  kindOfFlag,
} from "./id-kinds"
import { listUpTo } from "./paging"
import { cleanLine } from "./terminal"

const NEWEST = 1000

/** The arguments of a command, with whole ids in the place of their endings. */
export async function expandArguments(context: Context, command: Command): Promise<string[]> {
  const whole: string[] = []
  for (const [at, word] of command.args.entries()) {
    const name = command.registeredArguments[at]?.name()
    const kind = name === undefined ? undefined : kindOfArgument(command, name)
    whole.push(kind && isShortId(word) ? await resolveId(context, kind, word, whole[0]) : word)
  }
  return whole
}

/** The same for the account and the project to work in; they are looked for outside of any. */
export async function expandAccountFlags(
  flags: GlobalFlags,
  command: Command,
): Promise<GlobalFlags> {
  const { account, project, ...rest } = flags
  const outside = openContext({ ...rest, color: flags.color })
  const chosen = account === undefined ? {} : await expandOptions(outside, command, { account })
  const inside = openContext({ ...rest, ...chosen, color: flags.color })
  return {
    ...flags,
    ...chosen,
    ...(project !== undefined && (await expandOptions(inside, command, { project }))),
  }
}

/** The same for the options that are ids. */
export async function expandOptions<Options extends object>(
  context: Context,
  command: Command,
  options: Options,
): Promise<Options> {
  const whole: Record<string, unknown> = Object.fromEntries(Object.entries(options))
  for (const option of command.options) {
    const name = option.attributeName()
    const word = whole[name]
    const kind = kindOfFlag(option.long)
    if (kind && typeof word === "string" && isShortId(word)) {
      whole[name] = await resolveId(context, kind, word)
    }
  }
  return whole as Options
}

/**
 * The id with this ending: among those listed last, else among the 1,000 newest. Throws with exit 3
 * when there is none (of what people name, gives the word as it is), and with exit 2 naming all of them when there are several.
 */
async function resolveId(
  context: Context,
  kind: IdKindName,
  ending: string,
  above = "",
): Promise<string> {
  const { url } = context.connection()
  const ends = (id: string) => id.endsWith(ending)
  const kinds: readonly IdKindName[] = (id_kinds[kind] as IdKind).one_of ?? [kind]
  const listed = kinds.flatMap((one) => cachedIds(environment, url, one)).filter(ends)
  if (listed.length === 1) return listed[0] ?? ending
  const newest = await newestOf(context.client(), kind, above)
  const found = newest.filter(({ id }) => ends(id))
  const [only] = found
  const { plural, is_named }: IdKind = id_kinds[kind]
  if (found.length === 1 && only) return only.id
  if (found.length > 1) throw several(ending, plural, found)
  if (is_named) return ending
  const message = `No id among the ${NEWEST} newest ${plural} ends with ${ending}.`
  throw new Failure(exits.not_found, "not_found", message, { hint: "give the whole id" })
}

function several(ending: string, plural: string, found: readonly IdCandidate[]): Failure {
  const failure = usage(`${found.length} ${plural} have an id that ends with ${ending}.`)
  const candidates = found.map(({ id, label }) => `${id}  ${label}`.trimEnd())
  return new Failure(failure.exit, "ambiguous_id", failure.message, {
    details: { candidates },
    hint: "give more characters of the id, or the whole id",
  })
}

/** The id that a list lies under, `webhooks deliveries ID`, also when only its end was typed. */
export const expandParent = async (context: Context, kind: IdKindName, above: string) =>
  kind === "delivery" && isShortId(above) ? await resolveId(context, "webhook", above) : above

interface IdCandidate {
  id: string
  /** What it is, on one line. */
  label: string
}

/** A list of what belongs to something has one parameter in its path. */
const paramsFor = (route: OperationName, above: string) =>
  Object.fromEntries(paramsOf(route).map((name) => [name, above]))

/** The newest of a kind, newest first. */
export async function newestOf(
  client: Client,
  name: IdKindName,
  above = "",
  limit = NEWEST,
): Promise<IdCandidate[]> {
  const kind: IdKind = id_kinds[name]
  if (kind.one_of) {
    const lists = kind.one_of.map((one) => newestOf(client, one, above, limit))
    // Without a project the members can be read, and the keys cannot.
    const found = await Promise.allSettled(lists)
    if (found.every(({ status }) => status === "rejected")) await lists[0] // throws
    return found.flatMap((list) => (list.status === "fulfilled" ? list.value : []))
  }
  const found: object[] =
    name === "event"
      ? await readLatest(client, undefined, undefined, limit)
      : (await listUpTo(client, kind.route, limit, { params: paramsFor(kind.route, above) })).rows
  const rows = found as Record<string, unknown>[]
  return rows.map((row) => ({
    id: String(row[kind.field ?? "id"]),
    label: cleanLine(
      kind
        .label(row)
        .filter((part) => typeof part === "string" && part !== "")
        .join("  "),
    ),
  }))
}
