import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode } from "../core/errors"
import { count, id, text as sample } from "../lib/record-fields"
import { BatchWarnings } from "./render-email"
import { SendEmail } from "./schemas"

export const BatchRequest = t.Union([
  t.Object({ messages: t.Array(SendEmail, { minItems: 1, maxItems: 100 }) }),
  t.Array(SendEmail, { minItems: 1, maxItems: 100 }),
])

export const batchHeaders = t.Object({
  "X-Batch-Validation": t.Optional(
    t.Union([t.Literal("permissive"), t.Literal("strict")], {
      description:
        "`strict` refuses all messages if one is invalid. Default: `strict` for a bare list, `permissive` for an object.",
    }),
  ),
})

const queued = t.Literal("queued")

const code = t.Unsafe<ErrorCode>(t.String({ enum: Object.keys(codes) }))

const counts = { total: count(2), succeeded: count(1), failed: count(1) }

const BatchResult = t.Object(
  {
    id: id("ID of the batch. Its emails have it as `batch_id`."),
    ...counts,
    results: t.Array(
      t.Union([
        t.Object({ index: count(0), id: id(), status: queued }),
        t.Object({
          index: count(1),
          error: t.Object({
            code,
            message: t.String(),
            details: t.Record(t.String(), t.Unknown()),
          }),
        }),
      ]),
      { description: "One result for each message, in the order of the request." },
    ),
  },
  { title: "BatchResult" },
)

const meta = {
  request_id: sample("req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c"),
  warnings: BatchWarnings,
}

/** Of a batch given as an object, and of one given as a bare list. */
export const BatchAnswer = t.Union([
  t.Object(
    { id: id("ID of the batch."), data: BatchResult, meta: t.Object(meta) },
    { title: "BatchAnswer" },
  ),
  t.Object(
    {
      id: id("ID of the batch."),
      errors: t.Array(t.Object({ index: count(1), code, message: t.String() }), { examples: [[]] }),
      data: t.Array(t.Object({ id: id(), status: queued, index: count(0) }), {
        description: "The accepted messages.",
      }),
      meta: t.Object({ ...meta, ...counts }),
    },
    { title: "BareBatchAnswer", description: "The answer to a request with a bare list." },
  ),
])
