import { Type as t } from "@sinclair/typebox"

const STATUSES = ["queued", "running", "completed", "failed", "cancelled"] as const

/** The Job record, as every route answers it that begins, shows or cancels one. */
export const Job = t.Object({
  id: t.String(),
  type: t.String(),
  status: t.Union(STATUSES.map((status) => t.Literal(status))),
  progress: t.Object({ done: t.Integer(), total: t.Integer(), failed: t.Integer() }),
  result: t.Unknown(),
  error: t.Union([t.Object({ code: t.String(), message: t.String() }), t.Null()]),
  created_at: t.String(),
  completed_at: t.Union([t.String(), t.Null()]),
})
