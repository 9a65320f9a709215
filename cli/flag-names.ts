import type { Command } from "commander"

/** What a person typed for a field of the request. */
export interface Typed {
  /** `--reply-to`, `URL`, or the path in the body for what has no flag. */
  name: string
  /** The one value given there, unless it is a secret. */
  value?: string
}

/** Fields whose flag is not their own name with hyphens. */
const flag_of: Record<string, string> = {
  "account-name": "account-name",
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
  "idempotency-key": "idempotency-key",
  invitation_token: "invitation",
  ip_addresses: "ip",
  key_id: "key",
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

/** Errors name the flag that a person typed, not the path in a body that they never saw. */
export function typedAs(command: Command | undefined): (path: string) => Typed {
  return (path) => {
    const steps = path.split(".").filter((step) => !/^\d+$/.test(step))
    if (!command) return { name: path }
    const argument = argumentOf(command, steps[0] ?? "")
    if (argument) return argument
    const given = command.opts<Record<string, unknown>>()
    const options = namesOf(steps).flatMap((name) => optionsNamed(command, name))
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

/** An argument stands in capitals, as its place has no name of its own on the line. */
function argumentOf(command: Command, field: string): Typed | undefined {
  const at = command.registeredArguments.findIndex((argument) => {
    const name = argument.name()
    return name === field || `${name}_id` === field || (name === "file" && field === "messages")
  })
  const name = command.registeredArguments[at]?.name().toUpperCase()
  if (name === undefined) return undefined
  const value = command.args[at]
  return value === undefined || SECRET.test(name.toLowerCase()) ? { name } : { name, value }
}
