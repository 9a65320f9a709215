import { type Client, openClient } from "./client"
import { environment } from "./environment"
import { usage } from "./errors"
import { type GlobalFlags, optionWords } from "./flags"
import { cacheListedIds } from "./id-kinds"
import { type Form, type Output, openOutput, write } from "./output"
import { type Connection, connection } from "./profiles"
import { accessToken } from "./session"
import { type Paint, painter, readTerminal, type Terminal } from "./terminal"
import { duration } from "./time"

/** What a command works with. */
export interface Context {
  readonly flags: GlobalFlags
  readonly terminal: Terminal
  readonly paint: Paint
  readonly output: Output
  /** `--timeout` in milliseconds. */
  readonly timeout: number | undefined
  connection(): Connection
  /** Sends one request with the client of the command. */
  call: Client["call"]
  /** `onHeaders` gets the headers of every answer. */
  client(timeout?: number, choice?: AccountChoice, onHeaders?: (headers: Headers) => void): Client
  /** For calls that need no credential; `url` without it is that of the connection. */
  anonymous(url?: string, timeout?: number): Client
}

/** Another account or project than the one that is chosen. */
interface AccountChoice {
  account_id?: string
  project_id?: string | null
}

/** What an action gets: the context, its own options, its arguments. Returns the exit, default 0. */
export type Action<Options> = (
  context: Context,
  options: Options,
  ...words: string[]
) => Promise<number | undefined>

const DEFAULT_TIMEOUT = 30_000

export function openContext(given: GlobalFlags): Context {
  const flags = withOutput(given)
  const terminal = readTerminal(environment, !flags.color)
  const paint = painter(terminal.colour)
  const named = flags.json?.split(",").map((name) => name.trim())
  const fields = named?.filter((name) => name !== "")
  const { profile, url, config } = flags
  const same_server = optionWords({ profile, url, config })
  const timeout = flags.timeout === undefined ? undefined : duration(flags.timeout, "--timeout")
  const where = () => {
    const chosen = { profile: flags.profile, url: flags.url, api_key: flags.apiKey }
    const found = connection(chosen, environment)
    const { account = found.account_id, project = found.project_id } = flags
    // A project belongs to one account: another account has others.
    const same = account === found.account_id || flags.project !== undefined
    return { ...found, account_id: account, project_id: same ? project : null }
  }
  const trace = (line: string) => void write(process.stderr, `${line}\n`)
  const options = (limit: number | undefined) => ({
    timeout: limit ?? timeout ?? DEFAULT_TIMEOUT,
    dry_run: flags.dryRun === true,
    trace: flags.verbose ? trace : undefined,
  })
  const client: Context["client"] = (limit, choice, onHeaders) => {
    const here = { ...where(), ...choice }
    const access = () => accessToken(here, environment)
    return openClient(here, { ...options(limit), access, onHeaders })
  }

  return {
    flags,
    terminal,
    paint,
    timeout,
    output: openOutput({
      form: formOf(flags, terminal.out),
      fields: fields?.length ? fields : undefined,
      terminal,
      paint,
      same_server,
      onTable: (kind, ids) => {
        const known = ids.flatMap((id) => id ?? [])
        cacheListedIds(environment, where().url, kind, known)
      },
    }),
    connection: where,
    client,
    call: (name, ...input) => client().call(name, ...input),
    anonymous(url, limit) {
      const here = where()
      const there = { ...here, url: url ?? here.url, signed_in: false }
      return openClient(there, { ...options(limit), anonymous: true })
    },
  }
}

/** `-o json` is `--json`, and `-o ndjson` is `--ndjson`. Throws for what contradicts itself. */
function withOutput(flags: GlobalFlags): GlobalFlags {
  const { output } = flags
  if (output === undefined) return flags
  if (output === "json") return { ...flags, json: flags.json ?? "" }
  if (output === "ndjson") return { ...flags, ndjson: true }
  if (output !== "table") {
    throw usage(`--output: "${output}" is not one of table, json and ndjson`)
  }
  if (flags.quiet || flags.ndjson || flags.json !== undefined) {
    throw usage("--output table cannot be combined with --json, --ndjson or --quiet")
  }
  return flags
}

/** Tables on a terminal, JSON in a pipe, or the form that a flag names. */
function formOf(flags: Partial<GlobalFlags>, is_terminal: boolean): Form {
  if (flags.output === "table") return "human"
  if (flags.quiet) return "quiet"
  if (flags.ndjson) return "ndjson"
  if (flags.json !== undefined) return "json"
  return is_terminal ? "human" : "json"
}
