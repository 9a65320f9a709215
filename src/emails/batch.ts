import type { Blobs } from "../core/blobs"
import { ApiError, invalid, type Problem, Problems, problemError } from "../core/errors"
import { newId } from "../core/ids"
import { workTurn } from "../core/work-turns"
import type { Caller } from "../identity/caller"
import type { NewMessage } from "../messages/pipeline"
import { subscribersOf } from "./email-audience"
import { readSendEmail, type SendEmail } from "./fields"
import { linkWarnings, type SendWarning } from "./link-warnings"
import { prepare, type SendRules } from "./prepare"
import { suppressionsOf } from "./suppressed"

const MOST_MESSAGES = 100

/** Messages that are prepared in one turn of the event loop, for a millisecond or two. */
const AT_ONCE = 50

export interface EmailBatch {
  items: BatchItem[]
  /** The body was a list: the answer then has the shape that clients of such batches expect. */
  bare: boolean
}

interface BatchItem {
  email: SendEmail
  problems: Problem[]
}

/** `{messages: [...]}` or a bare list. Only its size is checked here; each item keeps its own problems. */
export function readBatch(body: unknown, problems: Problems): EmailBatch {
  const bare = Array.isArray(body)
  const list = bare ? body : (body as { messages?: unknown } | null)?.messages
  if (list === undefined) problems.add("messages", "required", "The field is required.")
  else if (!Array.isArray(list) || list.length === 0 || list.length > MOST_MESSAGES) {
    const hint = `The value must be a list of 1 to ${MOST_MESSAGES} messages.`
    problems.add("messages", "invalid", hint)
  }
  if (problems.any || !Array.isArray(list)) return { items: [], bare }
  return { items: list.map(readItem), bare }
}

function readItem(given: unknown, at: number): BatchItem {
  const own = new Problems(`messages.${at}.`)
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const message = "A message must be a JSON object."
    const problem = { path: `messages.${at}`, code: "invalid", message }
    return { email: readSendEmail({}, own), problems: [problem] } // its fields are beside the point
  }
  return { email: readSendEmail(given, own), problems: own.list }
}

/** `strict` refuses all for one; `permissive` lets the good ones through. */
export function modeOf({ headers }: Request, { bare }: EmailBatch): "strict" | "permissive" {
  const mode = headers.get("x-batch-validation") ?? (bare ? "strict" : "permissive")
  if (mode === "strict" || mode === "permissive") return mode
  throw invalid("x-batch-validation", "invalid", "The value must be strict or permissive.")
}

interface PreparedBatch {
  batch_id: string
  total: number
  accepted: { index: number; message: NewMessage; warnings: SendWarning[] }[]
  refused: Refusal[]
}

/** Prepares each item for itself; under `strict` any refusal ends the whole request. */
export async function prepareBatch(
  batch: EmailBatch,
  mode: "strict" | "permissive",
  { rules, blobs, ...request }: BatchSender,
): Promise<PreparedBatch> {
  const batch_id = newId()
  const prepared: PreparedBatch = { batch_id, total: batch.items.length, accepted: [], refused: [] }
  const suppressions = await suppressionsOf(rules.suppressions, request.caller.project_id, () =>
    batch.items.flatMap(({ email: { to, cc, bcc } }) => [to, ...cc, ...bcc]),
  )
  const emails = batch.items.map(({ email }) => email)
  const subscribers = await subscribersOf(rules.audience, request.caller.project_id, emails)
  const sender = { ...request, source: "api" as const, batch_id, suppressions, subscribers }
  for (const [index, { email, problems }] of batch.items.entries()) {
    if (index % AT_ONCE === 0) await workTurn(request.caller.project_id)
    try {
      if (problems.length > 0) throw problemError(problems)
      const message = await prepare(email, sender, rules, blobs)
      const warnings = await linkWarnings(rules, request.caller, email, message)
      prepared.accepted.push({ index, message, warnings })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      prepared.refused.push({ index, error })
    }
  }
  if (mode === "strict" && prepared.refused.length > 0) throw refusalOf(prepared.refused)
  return prepared
}

/** What the quota refused joins the refused messages, or ends the request under `strict`. */
export function settled(
  prepared: PreparedBatch,
  answers: (object | ApiError)[],
  mode: "strict" | "permissive",
): PreparedBatch {
  const refused = [...prepared.refused]
  const accepted = prepared.accepted.filter(({ index }, at) => {
    const answer = answers[at]
    if (!(answer instanceof ApiError)) return true
    if (mode === "strict") throw answer
    refused.push({ index, error: answer })
    return false
  })
  return { ...prepared, accepted, refused: refused.sort((a, b) => a.index - b.index) }
}

interface BatchSender {
  caller: Caller
  rules: SendRules
  blobs: Blobs
  idempotency_key: string | null
  signal: AbortSignal
}

/** Why one item of the batch cannot be sent. */
interface Refusal {
  index: number
  error: ApiError
}

/**
 * One bad item answers with its own code; several share a `validation_error` (contract 20, 1). What
 * the server cannot do now (503) is no mistake of the items, so it is told as what it is.
 */
function refusalOf(refusals: Refusal[]): ApiError {
  const [first] = refusals
  const unable = refusals.find(({ error }) => error.status >= 500)
  const alone = refusals.length === 1 ? first : unable
  if (alone) return placed(alone)
  return problemError(refusals.flatMap(problemsOf))
}

function problemsOf({ index, error: { code, message, details } }: Refusal): Problem[] {
  const { fields } = details as { fields?: Problem[] }
  return fields ?? [{ path: fieldOf(index, details), code, message: bare(index, message) }]
}

/** The item's own error, which says where in the batch the item stands. */
function placed({ index, error }: Refusal): ApiError {
  const { code, message, details, headers, status } = error
  const place = { ...details, field: fieldOf(index, details), index }
  const text = message.startsWith(`messages.${index}`) ? message : `messages.${index}: ${message}`
  return new ApiError(code, text, place, { headers, status })
}

function fieldOf(index: number, details: object): string {
  const { fields = [], ...told } = details as { field?: unknown; fields?: Problem[] }
  const field = fields.length === 1 ? fields[0]?.path : told.field
  const item = `messages.${index}`
  if (typeof field !== "string" || field === "") return item
  return field.startsWith(`${item}.`) || field === item ? field : `${item}.${field}`
}

/** The path stands beside the message in a list of problems: once is enough. */
const bare = (index: number, message: string) =>
  message.replace(new RegExp(`^messages\\.${index}[^:]*: `), "")

/** The reply, in the form that belongs to the form of the request. */
export function batchReply({ batch_id, total, accepted, refused }: PreparedBatch, bare: boolean) {
  const failed = refused.length
  const sent = accepted.map(({ index, message }) => ({
    index,
    id: message.id,
    status: "queued" as const,
  }))
  const counts = { total, succeeded: total - failed, failed }
  const told = accepted.flatMap(({ index, warnings }) => warnings.map((one) => ({ index, ...one })))
  const meta = told.length > 0 ? { warnings: told } : {}
  if (bare) {
    const errors = refused.map(({ index, error: { code, message } }) => ({ index, code, message }))
    const data = sent.map(({ id, status, index }) => ({ id, status, index }))
    return { top: { id: batch_id, errors }, data, meta: { ...counts, ...meta } }
  }
  const errors = refused.map(({ index, error: { code, message, details } }) => ({
    index,
    error: { code, message, details: details as Record<string, unknown> },
  }))
  const results = [...sent, ...errors].sort((a, b) => a.index - b.index)
  return { top: { id: batch_id }, data: { id: batch_id, ...counts, results }, meta }
}
