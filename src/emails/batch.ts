import type { Caller } from "../accounts/caller"
import type { Blobs } from "../core/blobs"
import { ApiError, type ErrorCode } from "../core/errors"
import { newId } from "../core/ids"
import { invalid, type Problem, Problems, problemError } from "../http/problems"
import type { NewMessage } from "../messages/pipeline"
import { readSendEmail, type SendEmail } from "./fields"
import { prepare, type SendRules } from "./prepare"

export const MOST_MESSAGES = 100

export interface Batch {
  items: Item[]
  /** The body was a list: the answer then has the shape that clients of such batches expect. */
  bare: boolean
}

interface Item {
  email: SendEmail
  problems: Problem[]
}

/** `{messages: [...]}` or a bare list. Only its size is judged here; each item keeps its own. */
export function readBatch(body: unknown, problems: Problems): Batch {
  const bare = Array.isArray(body)
  const list = bare ? body : (body as { messages?: unknown } | null)?.messages
  if (list === undefined) problems.add("messages", "required", "The field is required.")
  else if (!Array.isArray(list) || list.length === 0 || list.length > MOST_MESSAGES) {
    problems.add("messages", "invalid", `A list of 1 to ${MOST_MESSAGES} messages.`)
  }
  if (problems.any || !Array.isArray(list)) return { items: [], bare }
  return { items: list.map(readItem), bare }
}

function readItem(given: unknown, at: number): Item {
  const own = new Problems(`messages.${at}.`)
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const message = "A message is a JSON object."
    const problem = { path: `messages.${at}`, code: "invalid", message }
    return { email: readSendEmail({}, own), problems: [problem] } // its fields are beside the point
  }
  return { email: readSendEmail(given, own), problems: own.list }
}

/** `strict` refuses all for one; `permissive` lets the good ones through. */
export function modeOf({ headers }: Request, { bare }: Batch): "strict" | "permissive" {
  const mode = headers.get("x-batch-validation") ?? (bare ? "strict" : "permissive")
  if (mode === "strict" || mode === "permissive") return mode
  throw invalid("x-batch-validation", "invalid", "Either strict or permissive.")
}

export interface Refused {
  index: number
  code: ErrorCode
  message: string
  details: object
}

export interface Prepared {
  batch_id: string
  total: number
  accepted: { index: number; message: NewMessage }[]
  refused: Refused[]
}

/** Prepares each item for itself; under `strict` the first refusal ends the whole request. */
export async function prepareBatch(
  batch: Batch,
  mode: "strict" | "permissive",
  { caller, rules, blobs, idempotency_key }: Circumstances,
): Promise<Prepared> {
  if (mode === "strict") refuseProblems(batch)
  const batch_id = newId()
  const prepared: Prepared = { batch_id, total: batch.items.length, accepted: [], refused: [] }
  const sender = { caller, source: "api" as const, batch_id, idempotency_key }
  for (const [index, { email, problems }] of batch.items.entries()) {
    try {
      if (problems.length > 0) throw problemError(problems)
      const message = await prepare(email, sender, rules, blobs)
      prepared.accepted.push({ index, message })
    } catch (error) {
      if (!(error instanceof ApiError) || mode === "strict") throw at(index, error)
      const { code, message, details } = error
      prepared.refused.push({ index, code, message, details })
    }
  }
  return prepared
}

/** After the door: what the quota refused joins the refused, or ends the request under `strict`. */
export function settled(
  prepared: Prepared,
  answers: (object | ApiError)[],
  mode: "strict" | "permissive",
): Prepared {
  const refused = [...prepared.refused]
  const accepted = prepared.accepted.filter(({ index }, at) => {
    const answer = answers[at]
    if (!(answer instanceof ApiError)) return true
    if (mode === "strict") throw answer
    const { code, message, details } = answer
    refused.push({ index, code, message, details })
    return false
  })
  return { ...prepared, accepted, refused: refused.sort((a, b) => a.index - b.index) }
}

interface Circumstances {
  caller: Caller
  rules: SendRules
  blobs: Blobs
  idempotency_key: string | null
}

function refuseProblems({ items }: Batch) {
  const all = items.flatMap(({ problems }) => problems)
  if (all.length > 0) throw problemError(all)
}

/** Whoever sends a hundred wants to know which one it was. */
function at(index: number, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  const { code, message, details, headers, status } = error
  return new ApiError(
    code,
    `messages.${index}: ${message}`,
    { ...details, index },
    { headers, status },
  )
}

/** The reply, in the form that belongs to the form of the request. */
export function batchReply({ batch_id, total, accepted, refused }: Prepared, bare: boolean) {
  const failed = refused.length
  const sent = accepted.map(({ index, message }) => ({ index, id: message.id, status: "queued" }))
  const counts = { total, succeeded: total - failed, failed }
  if (bare) {
    const errors = refused.map(({ index, code, message }) => ({ index, code, message }))
    const data = sent.map(({ id, status, index }) => ({ id, status, index }))
    return { top: { id: batch_id, errors }, data, meta: counts }
  }
  const errors = refused.map(({ index, ...error }) => ({ index, error }))
  const results = [...sent, ...errors].sort((a, b) => a.index - b.index)
  return { top: { id: batch_id }, data: { id: batch_id, ...counts, results } }
}
