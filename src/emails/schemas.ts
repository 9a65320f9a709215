import { Type as t } from "@sinclair/typebox"
import { notOffered } from "../http/field-names"
import { dateFilters, pageQuery } from "../http/page"
import { STATUSES } from "./list"
import { NOT_OFFERED } from "./not-offered"

const mailbox = t.Object({ email: t.String(), name: t.Optional(t.Union([t.String(), t.Null()])) })
const address = t.Union([t.String({ maxLength: 998 }), mailbox])

export const SendEmail = t.Object({
  to: t.Union([address, t.Array(address, { minItems: 1, maxItems: 1 })], {
    description: "One address: `a@b.test`, `Name <a@b.test>` or an object.",
  }),
  from: t.Optional(address),
  cc: t.Optional(t.Union([address, t.Array(address, { maxItems: 49 })])),
  bcc: t.Optional(t.Union([address, t.Array(address, { maxItems: 49 })])),
  subject: t.String({ minLength: 1, maxLength: 998 }),
  html: t.Optional(t.String()),
  text: t.Optional(t.String({ description: "Plain text. Without it, it is made from `html`." })),
  reply_to: t.Optional(t.Union([address, t.Array(address, { maxItems: 10 })])),
  tags: t.Optional(
    t.Union([
      t.Array(t.String({ maxLength: 100 }), { maxItems: 10 }),
      t.Array(t.Object({ name: t.String(), value: t.String() }), { maxItems: 10 }),
    ]),
  ),
  metadata: t.Optional(
    t.Record(t.String({ maxLength: 64 }), t.Unknown(), {
      description: "Your own data, at most 50 keys and 16 KiB. Reads return it; it is not sent.",
    }),
  ),
  headers: t.Optional(
    t.Record(t.String(), t.String({ maxLength: 998 }), {
      description:
        "At most 25 further headers. Headers that the service writes itself are refused.",
    }),
  ),
  attachments: t.Optional(
    t.Array(
      t.Object({
        filename: t.String({ maxLength: 255 }),
        content: t.Optional(
          t.String({ description: "The file in strict base64. Give `content` or `path`." }),
        ),
        path: t.Optional(
          t.String({
            description: "https:// URL of a file of at most 10 MB. The server fetches it at once.",
          }),
        ),
        content_type: t.Optional(t.String()),
        content_id: t.Optional(t.String()),
      }),
      {
        maxItems: 50,
        description: "Decoded attachments, `html` and `text` together may have at most 10 MB.",
      },
    ),
  ),
  ...Object.fromEntries(NOT_OFFERED.map((name) => [name, notOffered()])),
})

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

export const ResendRequest = t.Object({ to: t.Optional(address) })

const status = t.Union(STATUSES.map((one) => t.Literal(one)))

export const emailQuery = pageQuery({
  status: t.Optional(status),
  to: t.Optional(t.String({ maxLength: 254 })),
  from: t.Optional(t.String({ maxLength: 254 })),
  tag: t.Optional(t.String({ maxLength: 100 })),
  domain: t.Optional(
    t.String({ maxLength: 253, description: "Show only emails from this sender domain." }),
  ),
  template_id: t.Optional(t.String()),
  subject: t.Optional(
    t.String({
      maxLength: 998,
      description:
        "Show only emails whose subject contains this text. Upper and lower case make no difference.",
    }),
  ),
  stream: t.Optional(
    t.Union([t.Literal("transactional"), t.Literal("broadcast"), t.Literal("auth")]),
  ),
  batch_id: t.Optional(t.String({ maxLength: 36 })),
  ...dateFilters,
})
