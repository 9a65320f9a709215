import type {
  AccessKind,
  RestoredAccess,
  RestoredRefusals,
  UnknownSince,
} from "../../src/operations/restore/unknown-since"
import type { Context } from "../lib/context"
import { ago, type Columns, table, wide } from "../lib/table"

/** The command that shows each kind, with what can end it. */
const COMMANDS: Record<AccessKind, string> = {
  api_keys: "belfry keys list",
  people: "belfry admin users",
  webhooks: "belfry webhooks list",
  providers: "belfry providers list",
}

/** What the backup cannot know, as the command answers it. */
export const unknownRecord = ({ access, ...rest }: UnknownSince, since: string) => ({
  since,
  access: access.map((line) => ({ ...line, command: COMMANDS[line.kind] })),
  ...rest,
})

type UnknownRecord = ReturnType<typeof unknownRecord>
type Access = UnknownRecord["access"][number] & { [field: string]: unknown }
type Refusals = RestoredRefusals & { [field: string]: unknown }

const accessColumns: Columns<Access> = {
  "WORKS AGAIN": ({ kind }) => kind.replace("api_keys", "API keys"),
  COUNT: ({ count }) => String(count),
  NEWEST: ago(({ newest_at }) => newest_at),
  NAMES: wide(namesOf, "first"),
  "LOOK WITH": "command",
}

function namesOf({ names, count }: RestoredAccess): string {
  const more = count - names.length
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ")
}

const refusalColumns: Columns<Refusals> = {
  PROJECT: wide(({ project }) => project, "first"),
  SUPPRESSED: ({ suppressions }) => String(suppressions),
  LAST: ago(({ newest_suppression_at }) => newest_suppression_at, "never"),
  UNSUBSCRIBED: ({ unsubscribes }) => String(unsubscribes),
  "LAST ONE": ago(({ newest_unsubscribe_at }) => newest_unsubscribe_at, "never"),
  SUBSCRIBERS: ({ subscribers }) => String(subscribers),
}

const MOST_LINES = 20

/** The same for people: what may have been revoked, suppressed or erased since the backup was made. */
export function shownUnknown(
  { since, access, refusals, projects }: UnknownRecord,
  { paint, terminal }: Context,
): string[] {
  const there = access.filter(({ count }) => count > 0)
  const shown = refusals.slice(0, MOST_LINES)
  const more = projects - shown.length
  const lines = [
    `${paint.yellow("!")} What happened after ${since} is not in the backup. Before you resume:`,
  ]
  if (there.length > 0) {
    lines.push(
      "  Revoke again what was revoked since, and give again each secret that was changed since:",
      table(there as Access[], accessColumns, terminal.width, paint),
    )
  }
  if (shown.length > 0) {
    lines.push(
      "  Repeat the suppressions, unsubscriptions and erasures since these times:",
      table(shown as Refusals[], refusalColumns, terminal.width, paint),
      ...(more > 0 ? [`  and ${more} more projects: see --json`] : []),
      "  `belfry suppressions list` and `belfry subscribers list` show what the backup has of them.",
    )
  }
  return lines
}
