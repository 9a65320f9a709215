import { type Command, Option } from "commander"
import { type TypedValue, usage } from "./errors"

/** The channels, as the API names them, and what counts against a monthly limit. */
export const CHANNELS = ["email", "push", "sms", "in_app"] as const
export const METRICS = [...CHANNELS, "mau"] as const

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
 * Gives the global flags to the root, and to the whole tree below each of its needed commands. Each
 * command parses its own words only: were the root to look through all of them, `--text "$INPUT"` could
 * smuggle in a `--url` that gets the key.
 */
export function addGlobalFlags(command: Command, isNeeded: (name: string) => boolean): void {
  command.enablePositionalOptions()
  for (const option of options()) command.addOption(option.helpGroup(GROUP))
  command.addHelpOption(new Option("-h, --help", "print this help").helpGroup(GROUP))
  for (const option of command.options) refuseTwice(option)
  for (const child of command.commands) {
    if (isNeeded(child.name())) addGlobalFlags(child, () => true)
  }
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

/** Fields whose flag is not their own name with hyphens. */
const flag_of: Record<string, string> = {
  actor_id: "actor",
  attachments: "attach",
  batch_id: "batch",
  created_after: "since",
  created_before: "until",
  data: "override",
  domain: "search",
  event_type: "event",
  event_types: "event",
  events: "event",
  expires_at: "expires",
  header_format: "signature",
  headers: "header",
  invitation_token: "invitation",
  ip_addresses: "ip",
  key_id: "key",
  layout_id: "layout",
  template_id: "template",
  messages: "file",
  new_password: "password-stdin",
  overlap_hours: "overlap",
  password: "password-stdin",
  per_page: "limit",
  scopes: "scope",
  secret: "secret-file",
  tags: "tag",
  target_type: "target",
  tracking_subdomain: "tracking",
  transform: "transform-file",
  type: "event",
  types: "event",
  url: "endpoint",
  user_id: "user",
  "x-account-id": "account",
  "x-project-id": "project",
}

const SECRET = /password|secret|token|key|code/

/** A flag that fills one field of a request. */
export class FieldOption extends Option {
  readonly field: string

  constructor(flags: string, about: string, field: string) {
    super(flags, about)
    this.field = field
  }
}

/** The name of the flag for a field: `created_after` is `--since`, and `dkim_key` is `--dkim-key`. */
export const flagOf = (field: string): string => flag_of[field] ?? field.replaceAll("_", "-")

/** Errors name the flag that a person typed, not the path in a body that they never saw. */
export function typedAs(command: Command | undefined): (path: string) => TypedValue {
  return (path) => {
    const steps = path.split(".").filter((step) => !/^\d+$/.test(step))
    if (!command) return { name: path }
    const argument = argumentOf(command, steps[0] ?? "")
    if (argument) return argument
    const given = command.opts<Record<string, unknown>>()
    const own = command.options.filter(
      (one) => one instanceof FieldOption && one.field === steps[0],
    )
    const options = [...own, ...namesOf(steps).flatMap((name) => optionsNamed(command, name))]
    const option = options.find((one) => given[one.attributeName()] !== undefined) ?? options[0]
    const value = option && given[option.attributeName()]
    // Of a body from a file, only what a flag did not replace can be wrong.
    if (value === undefined && given.file !== undefined) return { name: `--file: ${path}` }
    if (!option?.long) return { name: path }
    const one = Array.isArray(value) && value.length === 1 ? value[0] : value
    const is_shown = typeof one === "string" && !SECRET.test(option.long)
    return is_shown ? { name: option.long, value: one } : { name: option.long }
  }
}

/** The flag's names that a path may have, the likeliest first. */
function namesOf(steps: readonly string[]): string[] {
  const [first = "", last = ""] = [steps[0], steps.at(-1)]
  const known = [flag_of[steps.join(".")], flag_of[first]].flatMap((name) => name ?? [])
  return [...known, ...[first, last].map((step) => step.replaceAll("_", "-").toLowerCase())]
}

/** Text and HTML also come from files: `--text` and `--text-file`. */
const optionsNamed = (command: Command, name: string) =>
  command.options.filter(({ long }) => long === `--${name}` || long === `--${name}-file`)

/** What batches list. */
const IN_FILES = ["messages", "devices"]

/** An argument stands in capitals, as its place has no name of its own on the line. */
function argumentOf(command: Command, field: string): TypedValue | undefined {
  const at = command.registeredArguments.findIndex((argument) => {
    const name = argument.name()
    return name === field || `${name}_id` === field || (name === "file" && IN_FILES.includes(field))
  })
  const name = command.registeredArguments[at]?.name().toUpperCase()
  if (name === undefined) return undefined
  const value = command.args[at]
  return value === undefined || SECRET.test(name.toLowerCase()) ? { name } : { name, value }
}

/** Flags that mean the same in every command that has them: name and help, written once. */

export const EVENT = "--event <type>"
export const ONLY_EVENT = "event type, or a group such as email.*; may be repeated"
export const SINCE = [
  "--since <when>",
  "start, as an ISO time or a span before now (10m, 2h, 7d)",
] as const
export const UNTIL = [
  "--until <when>",
  "end, as an ISO time or a span before now (10m, 2h, 7d)",
] as const
export const AFTER = ["--after <id>", "start after the event with this id"] as const
export const LIMIT = ["--limit <number>", "maximum number of rows (default: 25)"] as const
export const PERIOD = ["--period <YYYY-MM>", "month (default: the current month)"] as const

/** Of statistics, which know more spans than a month. */
export const ANY_PERIOD = [
  "--period <period>",
  "day, week, month, a month such as 2026-11, or days such as 2026-11-01/2026-11-15 (default: month)",
] as const

export const IDEMPOTENCY_KEY = [
  "--idempotency-key <key>",
  "a repeated call with this key has no second effect",
] as const
export const DATA_DIR = [
  "--data-dir <dir>",
  "folder of the database, the files and the master key",
] as const
export const SET = [
  "--set <key=value>",
  "value of any setting; may be repeated",
  "several",
] as const

/** Which server of this machine a command is about. */
export const HERE = [DATA_DIR, SET] as const

export const YOUR_EMAIL = ["--email <address>", "your email address"] as const
export const YOUR_NAME = ["--name <name>", "your name"] as const
export const PASSWORD_STDIN = ["--password-stdin", "read the password from stdin"] as const
export const NEW_PASSWORD_STDIN = ["--password-stdin", "read the new password from stdin"] as const
export const ACCOUNT_NAME = [
  "--account-name <name>",
  "name of the account (default: Main)",
] as const
export const PROJECT_NAME = [
  "--project-name <name>",
  "name of the first project (default: Default)",
] as const
export const SLUG = ["--slug <slug>", "short name for URLs: a-z, 0-9 and hyphens"] as const

/** One word in the form that every shell takes. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** ` --status bounced --limit 50`: options as they would be typed, with those left out not given. */
export function optionWords(options: Record<string, string | readonly string[] | undefined>) {
  return Object.entries(options)
    .flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => ` --${dashed(name)} ${quoted(one)}`),
    )
    .join("")
}

/** `eventId` of commander is `--event-id` as typed. */
const dashed = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** A first email that is accepted as printed: the domain is verified wherever a mailbox runs. */
export const FIRST_EMAIL =
  "belfry emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello"
