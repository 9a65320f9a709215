import { type Command, CommanderError } from "commander"
import { localRows } from "./commands/local"
import { addResources } from "./lib/add-resources"
import { normalized, readWords } from "./lib/arguments"
import { DryRun } from "./lib/client"
import { type Context, openContext } from "./lib/context"
import { environment } from "./lib/environment"
import { errorBody, errorText, exits, Failure } from "./lib/errors"
import { type GlobalFlags, globalFlags, quoted, typedAs } from "./lib/flags"
import { watchInterrupts, watchReaders } from "./lib/interrupt"
import { write } from "./lib/output"
import { profileWithKey } from "./lib/profiles"
import { painter, wantsColour } from "./lib/terminal"
import { createRoot, finishRoot } from "./root"

/** Runs one command line and ends the process with its exit code. */
export async function run(words: string[]): Promise<never> {
  watchInterrupts()
  watchReaders()
  let printed = Promise.resolve() // what --help prints, which must be out before the process ends
  const program = await programFor(words, (text) => {
    printed = printed.then(() => write(process.stdout, text))
  })
  const state: RunState = { flags: { color: true, ...wantedForm(words) }, command: undefined }
  program.hook("preAction", (_, command) => {
    state.flags = globalFlags(command)
    state.command = command
  })
  try {
    await parse(program, words)
    await printed
    process.exit(process.exitCode ?? exits.done)
  } catch (error) {
    process.exit(await ended(error, state))
  }
}

/** These run for long, and would hold the whole tree for as long. */
const SERVERS = ["serve", "up"]

/** The tree for one line. Of a server it has the commands of this machine only. */
export async function programFor(
  words: readonly string[],
  writeOut: (text: string) => void,
): Promise<Command> {
  const asksHelp = words.includes("--help") || words.includes("-h") // which may be of the whole tree
  if (!asksHelp && words.some((word) => SERVERS.includes(word))) {
    const servers = createRoot(writeOut)
    addResources(servers, [{ noun: "", about: "", rows: localRows }], () => true)
    finishRoot(servers, (name) => SERVERS.includes(name))
    if (SERVERS.includes(readWords(words, servers).command.name())) return servers
  }
  const { createProgram } = await import("./program")
  return createProgram(words, writeOut)
}

/** `-o table`, also in a line that cannot be read. */
const wantedForm = (words: readonly string[]): { output?: string } =>
  /(^| )(-o|--output)[ =]?table( |$)/.test(words.join(" ")) ? { output: "table" } : {}

async function parse(program: Command, words: string[]): Promise<void> {
  const given = helpWords(words, program)
  try {
    await program.parseAsync(normalized(given, program), { from: "user" })
  } catch (error) {
    const is_asked_help = error instanceof CommanderError && isHelp(error) && error.exitCode === 0
    if (!is_asked_help) throw error
  }
}

/** `help emails send` and `emails help send` are `emails send --help`. */
function helpWords(words: string[], program: Command): string[] {
  const at = words.indexOf("help")
  const before = at < 0 ? undefined : readWords(words.slice(0, at), program)
  const asked = before?.positional.length === 0 && before.command.commands.length > 0
  const named = asked ? words.toSpliced(at, 1) : words
  if (!asked && !words.some((word) => word === "--help" || word === "-h")) return words
  const { command, positional } = readWords(named, program)
  // Without --help commander says which command is unknown, and which one is nearest.
  if (positional.length > 0 && command.commands.length > 0) {
    return named.filter((word) => word !== "--help" && word !== "-h")
  }
  return asked ? [...named, "--help"] : words
}

/** Tells what went wrong, and gives the exit code for it. */
async function ended(error: unknown, { flags, command }: RunState): Promise<number> {
  if (error instanceof DryRun) {
    // A dry run has no result, so --json fields and --quiet do not apply.
    const { output } = openContext({ ...flags, quiet: false, output: "json", json: "" })
    await output.record(error.request, () => "")
    return exits.done
  }
  if (error instanceof CommanderError && isHelp(error)) {
    return exits.usage
  }
  const failure = await advised(asFailure(error), { flags, command })
  const is_terminal = process.stderr.isTTY === true
  const paint = painter(wantsColour(environment, is_terminal, flags.color === false))
  const is_text = flags.output === "table" || (is_terminal && !failure.is_for_log)
  const text = is_text
    ? errorText(command ? withNames(failure, command) : failure, paint, typedAs(command))
    : errorBody(failure)
  await write(process.stderr, `${text}\n`)
  if (!flags.verbose || !(error instanceof Error)) return failure.exit
  const stack = is_text ? error.stack : JSON.stringify({ stack: error.stack })
  await write(process.stderr, `${stack}\n`)
  return failure.exit
}

/** What came before an error: the flags, and the command that ran. */
interface RunState {
  flags: GlobalFlags
  command: Command | undefined
}

/** With the next step that only the server knows. */
async function advised(failure: Failure, { flags, command }: RunState): Promise<Failure> {
  if (!command || flags.dryRun) return failure
  const { exit, code } = failure
  const is_refused = exit === exits.unauthorized && code !== "feature_not_enabled"
  if (!is_refused || command.name() === "setup") return failure
  const context = openContext(flags)
  const told = await withSetup(failure, context)
  const other = otherKey(told, context)
  if (!other) return told
  return told.with({ hint: told === failure ? other : `${other}. Or: ${told.hint}` })
}

/** With what was not found, where the message does not say it: an argument, or the flag of its kind. */
function withNames(failure: Failure, command: Command): Failure {
  if (failure.exit !== exits.not_found || failure.status === undefined) return failure
  const kind = failure.code.replace(/_?not_found$/, "")
  const { name, value } = typedAs(command)(`${kind}_id`)
  // An optional argument is a text, which names nothing.
  const of = command.registeredArguments
  const args = command.args.filter((_, at) => (of[at] ?? of.at(-1))?.required)
  const words = value === undefined ? args : [`${name} ${value}`]
  const unnamed = words.filter((word) => !failure.message.includes(word.split(" ").at(-1) ?? ""))
  if (unnamed.length === 0) return failure
  return failure.with({ message: `${failure.message.replace(/\.$/, "")}: ${unnamed.join(" ")}.` })
}

/** The next step where a profile has a key for the server that refused the given one. */
function otherKey(failure: Failure, context: Context): string | undefined {
  const { url, api_key, key_from, signed_in } = context.connection()
  const is_wrong = failure.status === 401 || (api_key === null && failure.code === "unauthorized")
  const name = is_wrong && !signed_in ? profileWithKey(url, environment) : undefined
  if (name === undefined || key_from?.startsWith("the profile")) return undefined
  const drop = key_from === "--api-key" ? "leave out" : "unset"
  const without = key_from === null ? "" : `${drop} ${key_from.split(" ")[0]}, and `
  return `${without}use the key of the profile ${name} with --profile ${quoted(name)}`
}

const isHelp = ({ code }: CommanderError) =>
  ["commander.help", "commander.helpDisplayed", "commander.version"].includes(code)

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, "").replaceAll("\n", " ")
    return new Failure(exits.usage, "usage", nearOnly(message), { hint: "see --help" })
  }
  const message = error instanceof Error ? error.message : String(error)
  return new Failure(exits.failed, "internal_error", message)
}

const MOST_TYPING_ERRORS = 2

/** Commander also suggests what is three typing errors away, and then something else is meant. */
function nearOnly(message: string): string {
  const [, typed = "", suggested = ""] =
    /'([^']*)' \(Did you mean (?:one of )?(.+)\?\)$/.exec(message) ?? []
  const is_near = suggested.split(", ").some((one) => isNear(typed, one, MOST_TYPING_ERRORS))
  return is_near ? message : message.replace(/ \(Did you mean .*$/, "")
}

/** Whether this many typing errors at most lie between two words. */
function isNear(one: string, other: string, errors: number): boolean {
  if (one === other) return true
  const [rest, others] = [one.slice(1), other.slice(1)]
  if (one[0] === other[0]) return isNear(rest, others, errors)
  const after = (left: string, right: string) => isNear(left, right, errors - 1)
  return errors > 0 && (after(rest, others) || after(rest, other) || after(one, others))
}

const PATIENCE_MILLISECONDS = 2000

/**
 * On a server without an owner no sign-in is possible and no role helps. After every such refusal
 * the next step is to set it up. Any other failure stays as it is.
 */
async function withSetup(failure: Failure, context: Context): Promise<Failure> {
  const { url } = context.connection()
  try {
    const client = context.anonymous(url, PATIENCE_MILLISECONDS)
    const { data } = await client.call("GET /v1/setup")
    if (!data.required) return failure
  } catch (error) {
    // What cannot be asked changes nothing, but no key helps at a server that is not there.
    const is_away = error instanceof Failure && error.exit === exits.unreachable
    return is_away && failure.status === undefined ? error : failure
  }
  const next = `belfry setup ${quoted(url)}`
  return failure.with({
    details: { ...failure.details, next },
    hint: `this server has no owner yet. Become its owner with \`${next}\``,
  })
}
