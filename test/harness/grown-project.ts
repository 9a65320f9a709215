import type { Database } from "bun:sqlite"
import { getTableColumns, getTableName } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { newId } from "../../src/core/ids"
import { sampleRow, schemaTables } from "./table-rows"

/** Whose rows they are. */
export interface GrownOwner {
  account_id: string
  project_id: string
}

/** What the rows of a project that grew have in common, and what names one of each in a path. */
export interface GrownIds {
  email_id: string
  template_id: string
  subscriber_id: string
  webhook_id: string
  topic_id: string
  application_id: string
  environment_id: string
  organization_id: string
  end_user_id: string
}

/** By table: what its rows say, and as SQL what is different in the row number `i`. */
interface Growth {
  given?: Record<string, unknown>
  each?: Record<string, string>
  /** Where a project has only a few. */
  most?: number
}

const TIMES = ["created_at", "updated_at"]
const START_MS = Date.now() - 20 * 86_400_000
const STEP_MS = 5

/** An id of the time at which the row number `i` was made. Rows of two tables with the same number have the same id. */
const ID = `unhex(printf('%012x7%03x8000%012x', ${START_MS} + i * ${STEP_MS}, i % 4096, i))`

/** The row that the ids of a path name. */
const NAMED = 7

const just = (id: string) => `unhex('${id.replaceAll("-", "")}')`

const idOr = (id: string) => `CASE i WHEN ${NAMED} THEN ${just(id)} ELSE ${ID} END`

const TEXTS = { variables: [], detected_variables: [], layout_id: null, locale: null }

const INTENT = {
  category: null,
  exclude: [],
  respect_preferences: true,
  api_key_id: null,
  email: {
    from: { email: "me@mailbox.test", name: null },
    reply_to: [],
    template: null,
    track: null,
  },
}

const growths = (ids: GrownIds): Record<string, Growth> => {
  const { email_id, template_id, subscriber_id, webhook_id, topic_id } = ids
  const address = "ann@mailbox.test"
  const subject = { subject: "Your receipt", subject_key: "your receipt" }
  const sender = { sender: "me@mailbox.test", sender_domain: "mailbox.test" }
  const message = { channel: "email", status: "delivered", address, state: 4 }
  const named = { template_id, subscriber_id, category: "news", batch_id: newId() }
  return {
    messages: {
      given: {
        ...message,
        ...subject,
        ...sender,
        ...named,
        stream: "transactional",
        source: "api",
        tags: ["receipt"],
        recipients: [],
        scheduled_at: new Date().toISOString(),
        user_id: "u7",
        sent_at: new Date().toISOString(),
        rfc_message_id: "<1@mailbox.test>",
        envelope: { from: { email: "me@mailbox.test", name: null }, reply_to: [], attachments: [] },
      },
      each: { id: idOr(email_id) },
    },
    message_tags: { given: { tag: "receipt" }, each: { message_id: ID } },
    attempts: {
      given: { message_id: email_id, outcome: "retry", transcript: [] },
      each: { attempt: "i + 1" },
    },
    mailbox_mails: {
      given: {
        ...subject,
        from_address: "me@mailbox.test",
        to_address: address,
        recipients: [address],
        search_key: `me@mailbox.test\n${address}\nyour receipt`,
      },
    },
    mailbox_recipients: { given: { address }, each: { mail_id: ID } },
    inbound_emails: {
      given: {
        to_email: address,
        from_email: "me@mailbox.test",
        kind: "new",
        status: "processed",
        thread_id: newId(),
        session: { address: "", helo: "", mail_from: "", to: [address], tls: null },
      },
    },
    suppressions: {
      given: {
        channel: "email",
        reason: "bounce",
        origin: "event",
        scope_type: "project",
        scope_key: "",
      },
      each: { address: "'user' || i || '@example.com'" },
    },
    subscribers: {
      given: {
        status: "active",
        email: address,
        email_key: address,
        phone: "+15550100",
        tags: ["vip"],
      },
      each: { id: idOr(subscriber_id), external_id: "'u' || i" },
    },
    devices: {
      given: { scope: "project", platform: "ios", provider: "apns", status: "active" },
      each: { device_id: "'d' || i", user_id: "'u' || i", token_hash: "'h' || i" },
    },
    subscriber_tags: { given: { tag: "vip" }, each: { subscriber_id: ID } },
    topics: {
      given: { search_key: "news", visibility: "private", default: "off" },
      each: { id: idOr(topic_id), key: "'t' || i" },
    },
    topic_members: { given: { topic_id }, each: { number: "i + 1", subscriber_id: ID } },
    templates: {
      given: {
        status: "published",
        tags: [],
        summary: { ...TEXTS, subject: null, locales: [] },
        search_key: "receipt",
        channel_key: " email ",
        tag_key: " vip ",
      },
      each: { id: idOr(template_id), name: "'n' || i" },
    },
    template_versions: {
      given: {
        template_id,
        created_by: { type: "key", id: newId() },
        content: { ...TEXTS, channels: {}, partials: [], locale: null, locales: {} },
      },
      each: { version: "i + 1" },
    },
    consents: {
      given: { subscriber_id, channel: "email", action: "granted", source: "api" },
      each: { number: "i + 1" },
    },
    fan_outs: {
      given: {
        topic_id,
        status: "completed",
        kind: "publish",
        channels: ["email"],
        intent: INTENT,
      },
    },
    audit_log: {
      given: {
        actor: { type: "system", id: null, name: null },
        actor_id: newId(),
        action: "thing.changed",
        target_type: "thing",
      },
    },
    request_log: {
      given: {
        request_id: "req_same",
        method: "GET",
        path: "/v1/emails",
        status: 200,
        key_id: newId(),
      },
    },
    events: { given: { type: "email.delivered", subject_id: email_id } },
    webhooks: {
      most: 100,
      given: {
        status: "disabled",
        version: "2026-02-01",
        events: ["*"],
        header_format: "standard",
        retry_policy: { max_attempts: 3, intervals: [1, 2] },
      },
      each: { id: idOr(webhook_id) },
    },
    ...endUsers(ids),
    jobs: { given: { name: "usage.alert", state: 4 } },
    reputation_hours: {
      given: { dimension: "domain", hour: Math.floor(Date.now() / 3_600_000), shard: 0 },
      each: { name: "'d' || i" },
    },
    webhook_deliveries: {
      given: {
        webhook_id,
        status: "success",
        trigger: "event",
        event_type: "email.delivered",
        state: 4,
      },
      each: { event_id: ID },
    },
  }
}

const FAR = "2100-01-01T00:00:00.000Z"

/** Of one application, in `live`. */
function endUsers(ids: GrownIds): Record<string, Growth> {
  const { application_id, environment_id, organization_id, end_user_id } = ids
  const place = { application_id, environment_id, organization_id }
  const email = "'user' || i || '@example.com'"
  return {
    applications: {
      most: 1,
      given: { type: "web", allowed_origins: [], redirect_urls: [], deleting_at: null },
      each: { id: just(application_id) },
    },
    auth_environments: {
      most: 1,
      given: { ...place, name: "live", settings: {}, default_organization_id: organization_id },
      each: { id: just(environment_id) },
    },
    organizations: { most: 1, given: place, each: { id: just(organization_id) } },
    users: {
      given: {
        ...{ ...place, environment: "live", status: "active", subscriber_id: null },
        ...{ phone_number: null, anonymous_device_id: null, search_key: "ann example" },
      },
      each: { id: idOr(end_user_id), email, email_key: email },
    },
    memberships: { given: { ...place, permissions: [] }, each: { user_id: idOr(end_user_id) } },
    user_sessions: {
      given: { ...place, user_id: end_user_id, revoked_at: null, act: null, expires_at: FAR },
    },
  }
}

type Value = string | number | Uint8Array | null

/**
 * Fills the tables that grow with a project with the rows of these numbers, past every rule of how they are made. The
 * first number is 0. A server that is up need not hear of it.
 */
export async function growProject(
  database: Database,
  owner: GrownOwner,
  ids: GrownIds,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const tables = new Map((await schemaTables()).map((table) => [getTableName(table), table]))
  for (const [name, growth] of Object.entries(growths(ids))) {
    const table = tables.get(name)
    if (!table) throw new Error(`there is no table ${name}`)
    const last = Math.min(to, growth.most ?? to)
    if (from >= last) continue
    copyRow(database, table, { ...growth, given: { ...owner, ...growth.given } }, from, last)
  }
}

function copyRow(database: Database, table: SQLiteTable, growth: Growth, from: number, to: number) {
  const { given = {}, each = {} } = growth
  const row = sampleRow(table, given)
  const columns = Object.entries(getTableColumns(table)).filter(([, { hasDefault }]) => !hasDefault)
  const values: Value[] = []
  const expressions = columns.map(([name, column]) => {
    if (each[name]) return each[name]
    if (name === "id") return ID
    if (TIMES.includes(name)) return `${START_MS} + i * ${STEP_MS}`
    const value = row[name]
    values.push(value === null ? null : (column.mapToDriverValue(value) as Value))
    return "?"
  })
  const names = columns.map(([, column]) => `"${column.name}"`).join(", ")
  const numbers = `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${to})`
  database.run(
    `INSERT INTO "${getTableName(table)}" (${names}) ${numbers} SELECT ${expressions.join(", ")} FROM n`,
    values,
  )
}
