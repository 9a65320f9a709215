import { type Command, Option } from "commander"

/** The flags that every command takes, as commander reads them. */
export interface GlobalFlags {
  profile?: string
  url?: string
  apiKey?: string
  account?: string
  project?: string
  /** "" for all fields, else a comma list. */
  json?: string
  ndjson?: boolean
  quiet?: boolean
  color: boolean
  yes?: boolean
  dryRun?: boolean
  timeout?: string
  config?: string
  verbose?: boolean
}

const options = () => [
  new Option("--profile <name>", "use a stored profile (BELFRY_PROFILE)"),
  new Option("--url <url>", "address of the server (BELFRY_URL)"),
  new Option("--api-key <key>", "API key (BELFRY_API_KEY)"),
  new Option("--account <id>", "work in this account, when signed in"),
  new Option("--project <id>", "work in this project, when signed in"),
  new Option("--json [fields]", "print JSON, or only these fields of it: --json=id,status"),
  new Option("--ndjson", "print one JSON object a line"),
  new Option("--quiet", "print ids only"),
  new Option("--no-color", "print without colour (NO_COLOR)"),
  new Option("--yes", "answer every question with yes"),
  new Option("--dry-run", "show what would be sent, and send nothing"),
  new Option("--timeout <time>", "how long to wait: 500ms, 10s, 5m"),
  new Option("--config <file>", "TOML file with settings (BELFRY_CONFIG)"),
  new Option("--verbose", "tell every request on stderr"),
]

/**
 * Gives them to every command of the tree. Each parses its own words only: were the root to look
 * through all of them, `--text "$INPUT"` could smuggle in a `--url` that gets the key.
 */
export function addGlobalFlags(command: Command): void {
  command.enablePositionalOptions()
  for (const option of options()) command.addOption(option.helpGroup("Global options:"))
  for (const child of command.commands) addGlobalFlags(child)
}

/** What was given at any place of the line; the place nearest to the action wins. */
export function globalFlags(command: Command): GlobalFlags {
  const above = command.parent ? globalFlags(command.parent) : { color: true }
  const given = Object.entries(command.opts<Partial<GlobalFlags>>()).filter(
    ([name]) => command.getOptionValueSource(name) === "cli",
  )
  return { ...above, ...Object.fromEntries(given) }
}

/** `--json` takes its fields by `=` only, so that it never swallows the word behind it. */
export function normalized(words: string[], program: Command): string[] {
  const end = words.indexOf("--")
  const takes_value = valueFlags(program)
  return words.map((word, at) => {
    const is_value = takes_value.has(words[at - 1] ?? "") || (end >= 0 && at > end)
    return word === "--json" && !is_value ? "--json=" : word
  })
}

function valueFlags(command: Command): Set<string> {
  const own = command.options.filter(({ required }) => required).map(({ long }) => long ?? "")
  return new Set([...own, ...command.commands.flatMap((child) => [...valueFlags(child)])])
}
