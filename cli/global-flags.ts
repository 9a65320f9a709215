import { type Command, Option } from "commander"
import { usage } from "./failure"

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
  /** `table`, `json` or `ndjson`. */
  output?: string
  quiet?: boolean
  color: boolean
  yes?: boolean
  dryRun?: boolean
  timeout?: string
  config?: string
  verbose?: boolean
}

const options = () => [
  new Option("--profile <name>", "stored profile to use (BELFRY_PROFILE)"),
  new Option("--url <url>", "address of the server, like localhost:8080 (BELFRY_URL)"),
  new Option("--api-key <key>", "API key (BELFRY_API_KEY)"),
  new Option("--account <id>", "account to use, when you are signed in"),
  new Option("--project <id>", "project to use, when you are signed in"),
  new Option("-o, --output <form>", "output format, also in a pipe: table, json or ndjson"),
  new Option("--json [fields]", "print JSON, all fields or only these: --json id,status"),
  new Option("--ndjson", "print one JSON object per line"),
  new Option("--quiet", "print only ids"),
  new Option("--no-color", "print without colour (NO_COLOR)"),
  new Option("--yes", "answer every question with yes"),
  new Option("--dry-run", "show the request, and do not send it"),
  new Option("--timeout <time>", "maximum time to wait: 500ms, 10s, 5m"),
  new Option("--config <file>", "TOML file with settings (BELFRY_CONFIG)"),
  new Option("--verbose", "print every request on stderr"),
]

const GROUP = "Global options:"

/** Of an option with one value a second one would silently win, and the first be forgotten. */
function refuseTwice(option: Option): void {
  if (!option.required || option.variadic || option.parseArg) return
  option.argParser((value: string, before: string | undefined) => {
    if (before === undefined) return value
    const name = option.long ?? option.flags
    throw usage(`${name} is given twice: "${before}" and "${value}"`, several_of[name])
  })
}

const several_of: Partial<Record<string, string>> = {
  "--to": "for several recipients use --cc, --bcc or `belfry emails batch`",
}

/**
 * Gives them to every command of the tree. Each parses its own words only: were the root to look
 * through all of them, `--text "$INPUT"` could smuggle in a `--url` that gets the key.
 */
export function addGlobalFlags(command: Command): void {
  command.enablePositionalOptions()
  for (const option of options()) command.addOption(option.helpGroup(GROUP))
  command.addHelpOption(new Option("-h, --help", "print this help").helpGroup(GROUP))
  for (const option of command.options) refuseTwice(option)
  for (const child of command.commands) addGlobalFlags(child)
}

/** What an action gets of its options: its own ones, so that no flag of ours can slip into a request. */
export function ownOptions<Options>(command: Command): Options {
  const global = new Set(options().map((option) => option.attributeName()))
  const own = Object.entries(command.opts()).filter(([name]) => !global.has(name))
  return Object.fromEntries(own) as Options
}

/** What was given at any place of the line; the place nearest to the action wins. */
export function globalFlags(command: Command): GlobalFlags {
  const above = command.parent ? globalFlags(command.parent) : { color: true }
  const given = Object.entries(command.opts<Partial<GlobalFlags>>()).filter(
    ([name]) => command.getOptionValueSource(name) === "cli",
  )
  return { ...above, ...Object.fromEntries(given) }
}
