/**
 * What a stranger would write with a client made of `/v1/openapi.json`. The types come from the
 * description of the code under test, so this file is checked by openapi-client.sqlite.test.ts alone.
 */
import type { components, paths } from "belfry-api"
import createClient from "openapi-fetch"

type Email = components["schemas"]["Email"]

const UNKNOWN = "0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"

interface Told<Data> {
  data?: Data
  error?: { error: { code: string; message: string } }
}

/** Each call as its method and path with what came of it, in the order of the calls. */
export async function calls(baseUrl: string, key: string) {
  const api = createClient<paths>({ baseUrl, headers: { "X-API-Key": key } })
  const seen: string[] = []
  async function ok<Data>(name: string, call: Promise<Told<Data>>): Promise<Data> {
    const { data, error } = await call
    if (data === undefined) throw new Error(`${name}: ${error?.error.code} ${error?.error.message}`)
    seen.push(name)
    return data
  }

  const health = await ok("health", api.GET("/v1/health"))
  const up: "ok" | "degraded" | "draining" | "unavailable" = health.data.status

  const sent = await ok(
    "send",
    api.POST("/v1/emails", {
      params: { header: { "Idempotency-Key": "first" } },
      body: {
        from: "hello@example.test",
        to: { email: "ann@example.com", name: "Ann" },
        subject: "Your receipt",
        text: "Thank you.",
        tags: ["receipt"],
        metadata: { order: "1042" },
      },
    }),
  )
  const path = { email_id: sent.data.id }
  const email: Email = (await ok("email", api.GET("/v1/emails/{email_id}", { params: { path } })))
    .data
  const page = await ok(
    "emails",
    api.GET("/v1/emails", { params: { query: { status: "queued", per_page: 10 } } }),
  )
  const story = await ok("story", api.GET("/v1/emails/{email_id}/events", { params: { path } }))
  const content = await ok(
    "content",
    api.GET("/v1/emails/{email_id}/content", { params: { path } }),
  )
  await ok("attempts", api.GET("/v1/emails/{email_id}/attempts", { params: { path } }))
  const cancelled = await ok(
    "cancel",
    api.POST("/v1/emails/{email_id}/cancel", { params: { path } }),
  )

  const letter = { from: "hello@example.test", to: "ben@example.com", subject: "News", text: "Hi." }
  const batch = await ok("batch", api.POST("/v1/emails/batch", { body: { messages: [letter] } }))

  const domain = await ok(
    "domain",
    api.POST("/v1/domains", { body: { domain: "shop.example.com" } }),
  )
  const one = { path: { domain_id: domain.data.id } }
  const records = (await ok("status", api.GET("/v1/domains/{domain_id}/status", { params: one })))
    .data.dns_records
  await ok(
    "change domain",
    api.PATCH("/v1/domains/{domain_id}", { params: one, body: { return_path: "bounces" } }),
  )
  await ok("forget domain", api.DELETE("/v1/domains/{domain_id}", { params: one }))

  const hook = await ok(
    "hook",
    api.POST("/v1/webhooks", {
      body: { url: "http://127.0.0.1:9443/hooks", events: ["email.*"], header_format: "both" },
    }),
  )
  const at = { path: { webhook_id: hook.data.id } }
  const paused = await ok("pause", api.POST("/v1/webhooks/{webhook_id}/pause", { params: at }))
  await ok("deliveries", api.GET("/v1/webhooks/{webhook_id}/deliveries", { params: at }))
  await ok("forget hook", api.DELETE("/v1/webhooks/{webhook_id}", { params: at }))

  const made = await ok(
    "key",
    api.POST("/v1/api-keys", { body: { name: "narrow", scopes: ["email:read"] } }),
  )
  const gone = await ok(
    "revoke",
    api.DELETE("/v1/api-keys/{key_id}", { params: { path: { key_id: made.data.id } } }),
  )
  const usage = await ok("usage", api.GET("/v1/usage"))
  const settings = await ok(
    "settings",
    api.PATCH("/v1/settings", { body: { default_reply_to: "support@example.com" } }),
  )
  const feed = await ok("feed", api.GET("/v1/events", { params: { query: { types: "email.*" } } }))
  const types = await ok("types", api.GET("/v1/webhooks/events"))
  const refused = await api.GET("/v1/emails/{email_id}", {
    params: { path: { email_id: UNKNOWN } },
  })

  return {
    seen,
    told: {
      up,
      id: sent.id === email.id,
      tags: email.tags,
      to: email.to.email,
      found: page.data.map(({ id }) => id),
      total: page.meta.total,
      story: story.data.events.map(({ type }) => type),
      text: content.data.text,
      cancelled: cancelled.data.status_reason,
      batch: "results" in batch.data ? batch.data.succeeded : batch.data.length,
      records: records.filter(({ required }) => required).map(({ purpose }) => purpose),
      secret: hook.data.secret.slice(0, 6),
      paused: paused.data.disabled_reason,
      key: made.data.key.slice(0, 9),
      gone: gone.data.status,
      used: usage.data.email.used,
      reply_to: settings.data.default_reply_to,
      feed: feed.data.map(({ type }) => type),
      types: types.data.length > 50,
      refused: refused.error?.error.code,
    },
  }
}
