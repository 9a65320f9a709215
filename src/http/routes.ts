import { Type as t } from "@sinclair/typebox"
import { millis, now } from "../core/time"
import { VERSION } from "../core/version"
import { count, text, time, word } from "../lib/record-fields"
import type { Health } from "./health"
import { type AnyRoute, route } from "./route"

const status = word(["ok", "draining", "unavailable"])

/** Routes about the process itself. They answer anybody, and touch no project. */
export const healthRoutes = (health: Health): AnyRoute[] => [
  route({
    ...open,
    path: "/healthz",
    summary: "Whether the process lives",
    produces: "application/json",
    response: t.Object(
      { status: t.Literal("ok"), version: text(VERSION), uptime_seconds: count(86_400) },
      { title: "Liveness" },
    ),
    handle: () =>
      Response.json({
        status: "ok",
        version: VERSION,
        uptime_seconds: Math.floor((millis() - health.started_at) / 1000),
      }),
  }),
  route({
    ...open,
    path: "/readyz",
    summary: "Whether the process may be sent work; 503 when not",
    produces: "application/json",
    also: [503],
    response: t.Object(
      {
        status,
        checks: t.Object({
          database: text("ok"),
          jobs: text("ok"),
          disk: text("ok"),
          smtp: text("ok"),
        }),
      },
      { title: "Readiness" },
    ),
    handle: async () => {
      await health.look()
      const { status } = health
      const init = { status: status === "ok" ? 200 : 503 }
      return Response.json({ status, checks: health.checks() }, init)
    },
  }),
  route({
    ...open,
    path: "/v1/health",
    summary: "Status and version, for API clients",
    response: t.Object({ status, version: text(VERSION), time: time() }, { title: "Health" }),
    handle: () => ({ data: { status: health.status, version: VERSION, time: now() } }),
  }),
]

const open = {
  method: "GET" as const,
  callers: ["none" as const] as AnyRoute["callers"],
  scope: "-",
  status: [200] as [number],
  unlogged: true as const,
}
