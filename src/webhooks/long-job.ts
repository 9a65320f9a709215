import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Tx } from "../store/store"

/** The Job record of the contract (10, section 3). */
export interface Job {
  id: string
  type: string
  status: "queued" | "running" | "completed" | "failed" | "cancelled"
  progress: { done: number; total: number; failed: number }
  result: unknown
  error: { code: string; message: string } | null
  created_at: string
  completed_at: string | null
}

interface NewJob {
  type: string
  total?: number
}

export interface Step {
  done?: number
  failed?: number
}

export interface Ending {
  result?: unknown
  error?: { code: string; message: string }
}

/** The record as it is when the work was enqueued; nobody can ask for it again yet. */
export async function begin(_: Tx, __: string, { type, total = 0 }: NewJob): Promise<Job> {
  return {
    id: newId(),
    type,
    status: "queued",
    progress: { done: 0, total, failed: 0 },
    result: null,
    error: null,
    created_at: now(),
    completed_at: null,
  }
}

/** Returns whether to go on: nobody can cancel yet. */
export async function progress(_: Tx, __: string, ___: string, ____: Step = {}): Promise<boolean> {
  return true
}

export async function finish(_: Tx, __: string, ___: string, ____: Ending = {}): Promise<void> {}
