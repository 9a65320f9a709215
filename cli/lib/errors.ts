import { cleanLine, type Paint } from "./terminal"

/** Exit codes: each has one meaning in every command. */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  not_found: 3,
  unauthorized: 4,
  conflict: 5,
  limited: 6,
  invalid: 7,
  partly_failed: 8,
  no_input: 66,
  unreachable: 69,
  storage: 74,
  try_later: 75,
  interrupted: 130,
} as const

export type Exit = (typeof exits)[keyof typeof exits]

interface More {
  details?: Record<string, unknown>
  /** What to do next, one line. */
  hint?: string
  request_id?: string
  /** Of the answer that it was. */
  status?: number
  /** The server that gave it, and the source of the key. */
  asked?: { server: string; key_from: string | null }
}

/** A command cannot go on. Carries everything that is shown, and the number the process ends with. */
export class Failure extends Error {
  override readonly name = "Failure"
  readonly exit: Exit
  readonly code: string
  readonly details: Record<string, unknown>
  readonly hint: string | undefined
  readonly request_id: string | undefined
  readonly status: number | undefined
  readonly asked: More["asked"]
  /** Told as JSON, also on a terminal: it belongs to a log of that form. */
  is_for_log = false

  constructor(exit: Exit, code: string, message: string, more: More = {}) {
    super(message)
    this.exit = exit
    this.code = code
    this.details = more.details ?? {}
    this.hint = more.hint
    this.request_id = more.request_id
    this.status = more.status
    this.asked = more.asked
  }

  /** The same failure with another next step, or another message. */
  with({ message = this.message, ...more }: More & { message?: string }): Failure {
    return new Failure(this.exit, this.code, message, { ...this, ...more } as More)
  }
}

const PASSING: readonly (number | undefined)[] = [429, 500, 502, 503, 504]

/** The server said that it cannot now: the same call may do later. */
export const isPassing = ({ status }: Failure): boolean => PASSING.includes(status)

/** No answer came at all: a server that restarts, or none. */
export const isSilence = ({ code, exit }: Failure): boolean =>
  exit === exits.unreachable || (exit === exits.try_later && code === "timeout")

/** The command line itself is wrong. Exit 2. */
export const usage = (message: string, hint?: string): Failure =>
  new Failure(exits.usage, "usage", message, hint ? { hint } : {})

/** Whether the work was done; false where the server has no such thing. */
export async function wasThere(work: Promise<unknown>): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    if (error instanceof Failure && error.exit === exits.not_found) return false
    throw error
  }
}

/** The exit for an answer of the API that is not a 2xx. */
export function exitOfStatus(status: number): Exit {
  switch (status) {
    case 404:
      return exits.not_found
    case 401:
    case 403:
      return exits.unauthorized
    case 409:
      return exits.conflict
    case 402:
    case 429:
      return exits.limited
    case 400:
    case 413:
    case 422:
      return exits.invalid
    case 503:
    case 504:
      return exits.try_later
    default:
      return exits.failed
  }
}

const next_steps: Partial<Record<string, string>> = {
  unauthorized: "give a key with --api-key or BELFRY_API_KEY, or sign in with `belfry login`",
  unreachable: "start a server with `belfry up`, or name one with --url or BELFRY_URL",
  domain_not_verified: "send from an address at a verified domain; with `up` mailbox.test is one",
  sender_not_configured: "name the sender with --from",
  rate_limited: "send more slowly, or use `belfry emails batch`",
  bad_answer: "name the server with --url or BELFRY_URL",
  template_not_found: "see `belfry templates list`",
  webhook_not_found: "see `belfry webhooks list`",
  service_unavailable: "see `belfry status`, then try again",
}

/** The one line that says what to do about it. */
export function nextStep(failure: Failure): string | undefined {
  if (failure.hint) return failure.hint
  const { required_scope, required_role, retry_after, header, reason, fields } = failure.details
  if (required_role === "any") return "sign in with `belfry login`"
  if (typeof required_role === "string") {
    return `sign in with \`belfry login\` as a person with the role ${required_role}`
  }
  if (header === "X-Account-Id") return "choose one with `belfry accounts use`, or --account"
  if (header === "X-Project-Id") return "choose one with `belfry projects use`, or --project"
  if (typeof required_scope === "string") return `use a key with the scope ${required_scope}`
  if (reason === "no_provider") return "`belfry providers set smtp --help` shows how to add a relay"
  if (reason === "gateway") return "`belfry ai analyze` works without a model"
  if (reason === "not_active") return "make it active with `belfry webhooks enable ID`"
  if (saysUnknownType(fields)) return "see `belfry events types`"
  if (typeof retry_after === "number") return `try again in ${retry_after} s`
  return next_steps[failure.code]
}

/**
 * An unknown event type: the hint is the list of types, because the nearest name may mean something
 * else.
 */
const saysUnknownType = (fields: unknown): boolean =>
  Array.isArray(fields) && fields.some((field) => field?.code === "unknown_type")

/** The API's own error body, for programs. */
export function errorBody(failure: Failure): string {
  const { code, message, details, request_id, asked } = failure
  const meta = (request_id || asked) && { request_id, ...asked }
  return JSON.stringify({ error: { code, message, details }, ...(meta && { meta }) })
}

/** What happened, which value, what to do next: for people. `typed` names flags for fields. */
export function errorText(
  failure: Failure,
  paint: Paint,
  typed: (path: string) => TypedValue,
): string {
  const { details, code } = failure
  const faults = faultsOf(failure).map((fault) => faultLine(fault, typed))
  const [only] = faults
  const head = faults.length > 1 ? `${faults.length} values are wrong.` : only
  const lines = [
    `${paint.red("✗")} ${cleanText(head ?? failure.message)} ${paint.dim(`(${code})`)}`,
  ]
  if (faults.length > 1) lines.push(...faults.map((fault) => `  ${cleanLine(fault)}`))
  for (const [name, value] of detailLines(details, faults.length > 0)) {
    if (isTold(failure, name, value)) continue
    const label = name && `${paint.dim(cleanLine(name))}  `
    lines.push(`  ${label}${cleanLine(value)}`)
  }
  const step = nextStep(failure)
  if (step) lines.push(`  → ${cleanLine(step)}`)
  const origin = originText(failure)
  if (origin) lines.push(paint.dim(`  ${cleanLine(origin)}`))
  return lines.join("\n")
}

/** `request req_… at http://127.0.0.1:8080, key from --api-key`. */
function originText({ request_id, asked }: Failure): string {
  const request = request_id ? `request ${request_id}` : "request"
  if (!asked) return request_id ? request : ""
  const proof = asked.key_from === null ? "without a key" : `key from ${asked.key_from}`
  return `${request} at ${asked.server}, ${proof}`
}

/** What a person typed for a field of the request. */
export interface TypedValue {
  /** `--reply-to`, `URL`, or the path in the body for what has no flag. */
  name: string
  /** The one value given there, unless it is a secret. */
  value?: string
}

interface Fault {
  path: string
  message: string
}

/** Every field that an answer complains about. */
function faultsOf({ details, message }: Failure): Fault[] {
  const { fields, field, header } = details
  if (Array.isArray(fields) && fields.length > 0) {
    return fields.map((one: Partial<Fault>) => ({
      path: String(one.path),
      message: String(one.message),
    }))
  }
  const path = typeof field === "string" ? field : header
  return typeof path === "string" ? [{ path, message: withoutPath(message, path) }] : []
}

const withoutPath = (message: string, path: string): string =>
  message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message

/** `--to "ann": This is not one email address.` */
function faultLine({ path, message }: Fault, typed: (path: string) => TypedValue): string {
  const { name, value } = typed(path)
  const shown = value !== undefined && !hasWord(message, value) ? ` "${value}"` : ""
  return `${name}${shown}: ${withoutPath(message, path)}`
}

const hasWord = (message: string, word: string): boolean =>
  message.includes(`"${word}"`) || message.split(/[\s,;]+|[.:]\s|\.$/).includes(word)

/** The message, or the hint, has it already. */
function isTold({ message, hint = "" }: Failure, name: string, value: string): boolean {
  return name === "faults" || message.includes(value) || hint.includes(value)
}

// Faults of a configuration come as several lines.
const cleanText = (text: string) => text.split("\n").map(cleanLine).join("\n  ")

/** Said already: by the line of the field, by the next step, or by the command itself. */
const SAID = "field fields header next required_role required_scope advisory metadata".split(" ")

function detailLines(details: Record<string, unknown>, is_field: boolean): [string, string][] {
  return Object.entries(details).flatMap(([name, value]): [string, string][] => {
    if (SAID.includes(name) || (is_field && name === "reason")) return []
    if (value === null || value === "") return []
    if (name === "candidates" && Array.isArray(value)) return value.map((one) => ["", String(one)])
    return [[name, typeof value === "string" ? value : JSON.stringify(value)]]
  })
}
