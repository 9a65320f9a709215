import { setPriority } from "node:os"
import { parentPort } from "node:worker_threads"
import { ApiError } from "./errors"
import { ownThread, ownWorkMs } from "./processor-time"
import { catchStrayOutput } from "./stray-output"

/** What the pool sends, one at a time. */
export interface Task {
  id: number
  task: string
  input: unknown
}

export interface TaskError {
  name: string
  message: string
  code?: string
  details?: object
  status?: number
  stack?: string
}

/**
 * What the thread sends: once `ready`, then one answer a task; before the first answer of each kind of
 * task, that its code is loaded; and what a library would print. Each says how long the thread has worked.
 */
export type TaskAnswer = { worked_ms: number } & Told

type Told =
  | { stray: "info" | "warn" | "error"; message: string; fields?: Record<string, unknown> }
  | { ready: true; thread: string | undefined }
  | { loaded: string }
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; error: TaskError }

type TaskFunction = (input: never) => unknown
/** A name gives a function that loads the code of the task. */
type Tasks = Record<string, () => Promise<TaskFunction>>

const MAX_DEPTH = 4

/** Before the niceness of the thread, in its arguments. */
export const NICENESS = "--niceness="

/**
 * Called once by the worker file: answers every task of the pool with the function of that name.
 * Bytes in a result are moved to the main thread, not copied; an ApiError keeps its code there.
 */
export function serveTasks(tasks: Tasks): void {
  const port = parentPort
  if (!port) throw new Error("tasks run only in a worker thread")
  giveWay()
  const tell = (told: Told, transfer: ArrayBuffer[] = []) =>
    port.postMessage({ ...told, worked_ms: ownWorkMs() } satisfies TaskAnswer, transfer)
  catchStrayOutput((stray, message, fields) => tell({ stray, message, ...(fields && { fields }) }))
  const loaded = new Map<string, TaskFunction>()
  const functionOf = async (task: string) => {
    const known = loaded.get(task)
    if (known) return known
    if (!Object.hasOwn(tasks, task)) throw new Error(`there is no task "${task}"`)
    const found = (await tasks[task]?.()) as TaskFunction
    loaded.set(task, found)
    tell({ loaded: task })
    return found
  }
  port.on("message", async (message: Task) => {
    const answer = await perform(functionOf, message)
    try {
      tell(answer, answer.ok ? [...buffers(answer.value)] : [])
    } catch (error) {
      tell({ id: message.id, ok: false, error: written(error) })
    }
  })
  tell({ ready: true, thread: ownThread() })
}

/** On Linux process 0 is this thread alone (setpriority(2)); elsewhere it would be the whole process. */
function giveWay() {
  const argument = process.argv.find((one) => one.startsWith(NICENESS))
  const niceness = Number(argument?.slice(NICENESS.length) ?? 0)
  if (niceness === 0 || process.platform !== "linux") return
  try {
    setPriority(0, niceness)
  } catch {
    // A sandbox may forbid it. The thread works all the same.
  }
}

async function perform(functionOf: (task: string) => Promise<TaskFunction>, message: Task) {
  const { id, task, input } = message
  try {
    const run = await functionOf(task)
    const value: unknown = await run(input as never)
    return { id, ok: true as const, value }
  } catch (error) {
    return { id, ok: false as const, error: written(error) }
  }
}

function written(error: unknown): TaskError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) }
  const { name, message, stack } = error
  const plain: TaskError = { name, message, ...(stack && { stack }) }
  if (error instanceof ApiError) {
    return { ...plain, code: error.code, details: error.details, status: error.status }
  }
  return "code" in error && typeof error.code === "string" ? { ...plain, code: error.code } : plain
}

/** Buffers that belong to one array alone; a shared pool must never be given away. */
function buffers(value: unknown, found = new Set<ArrayBuffer>(), depth = 0): Set<ArrayBuffer> {
  if (value instanceof Uint8Array) {
    const { buffer } = value
    if (buffer instanceof ArrayBuffer && buffer.byteLength === value.byteLength) found.add(buffer)
  } else if (typeof value === "object" && value !== null && depth < MAX_DEPTH) {
    for (const item of Object.values(value)) buffers(item, found, depth + 1)
  }
  return found
}
