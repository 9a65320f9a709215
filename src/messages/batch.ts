import { ApiError, invalid, type Problem, Problems, problemError } from "../core/errors"
import { workTurn } from "../core/work-turns"
import type { NewMessage } from "./tables"

const MOST_MESSAGES = 100

/** Messages that are prepared in one turn of the event loop, for a millisecond or two. */
const AT_ONCE = 50

export interface SendBatch<Input> {
  items: BatchItem<Input>[]
  /** The body was a list: the answer then has the shape that clients of such batches expect. */
  bare: boolean
}

interface BatchItem<Input> {
  input: Input
  problems: Problem[]
}

type ReadSend<Input> = (given: unknown, problems: Problems) => Input

/** `{messages: [...]}` or a bare list. Only its size is checked here; each item keeps its own problems. */
export function readBatch<Input>(
  body: unknown,
  problems: Problems,
  read: ReadSend<Input>,
): SendBatch<Input> {
  const bare = Array.isArray(body)
  const list = bare ? body : (body as { messages?: unknown } | null)?.messages
  if (list === undefined) problems.add("messages", "required", "The field is required.")
  else if (!Array.isArray(list) || list.length === 0 || list.length > MOST_MESSAGES) {
    const hint = `The value must be a list of 1 to ${MOST_MESSAGES} messages.`
    problems.add("messages", "invalid", hint)
  }
  if (problems.any || !Array.isArray(list)) return { items: [], bare }
  return { items: list.map((given, at) => readItem(given, at, read)), bare }
}

function readItem<Input>(given: unknown, at: number, read: ReadSend<Input>): BatchItem<Input> {
  const own = new Problems(`messages.${at}.`)
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const message = "A message must be a JSON object."
    const problem = { path: `messages.${at}`, code: "invalid", message }
    return { input: read({}, own), problems: [problem] } // its fields are beside the point
  }
  return { input: read(given, own), problems: own.list }
}

/** `strict` refuses all for one; `permissive` lets the good ones through. */
export function modeOf(
  { headers }: Request,
  { bare }: Pick<SendBatch<unknown>, "bare">,
): "strict" | "permissive" {
  const mode = headers.get("x-batch-validation") ?? (bare ? "strict" : "permissive")
  if (mode === "strict" || mode === "permissive") return mode
  throw invalid("x-batch-validation", "invalid", "The value must be strict or permissive.")
}

interface PreparedItem<Warning> {
  message: NewMessage
  warnings: Warning[]
}

interface PreparedBatch<Warning> {
  batch_id: string
  total: number
  accepted: (PreparedItem<Warning> & { index: number })[]
  refused: Refusal[]
}

interface BatchSender<Input, Warning> {
  batch_id: string
  project_id: string
  mode: "strict" | "permissive"
  prepare: (input: Input) => Promise<PreparedItem<Warning>>
}

/** Prepares each item for itself; under `strict` any refusal ends the whole request. */
export async function prepareBatch<Input, Warning>(
  { items }: SendBatch<Input>,
  { batch_id, project_id, mode, prepare }: BatchSender<Input, Warning>,
): Promise<PreparedBatch<Warning>> {
  const prepared: PreparedBatch<Warning> = {
    ...{ batch_id, total: items.length, accepted: [], refused: [] },
  }
  for (const [index, { input, problems }] of items.entries()) {
    if (index % AT_ONCE === 0) await workTurn(project_id)
    try {
      if (problems.length > 0) throw problemError(problems)
      prepared.accepted.push({ index, ...(await prepare(input)) })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      prepared.refused.push({ index, error })
    }
  }
  if (mode === "strict" && prepared.refused.length > 0) throw refusalOf(prepared.refused)
  return prepared
}

/** What the quota refused joins the refused messages, or ends the request under `strict`. */
export function settled<Warning>(
  prepared: PreparedBatch<Warning>,
  answers: (object | ApiError)[],
  mode: "strict" | "permissive",
): PreparedBatch<Warning> {
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
export function batchReply<Warning extends object>(
  prepared: PreparedBatch<Warning>,
  bare: boolean,
) {
  const { batch_id, total, accepted, refused } = prepared
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
  const results = resultsOf(refused, sent)
  return { top: { id: batch_id }, data: { id: batch_id, ...counts, results }, meta }
}

/** One result for each message, in the order of the request. */
export function resultsOf<Sent extends { index: number }>(refused: Refusal[], sent: Sent[]) {
  const errors = refused.map(({ index, error: { code, message, details } }) => ({
    index,
    error: { code, message, details: details as Record<string, unknown> },
  }))
  return [...sent, ...errors].sort((a, b) => a.index - b.index)
}
