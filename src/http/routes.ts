import { Type as t } from "@sinclair/typebox"
import { millis, now } from "../core/time"
import { VERSION } from "../core/version"
import type { Health } from "./health"
import { type AnyRoute, route } from "./route"

/** Routes about the process itself. They answer anybody, and touch no project. */
export const healthRoutes = (health: Health): AnyRoute[] => [
  route({
    ...open,
    path: "/healthz",
    summary: "Whether the process lives",
    produces: "application/json",
    response: t.Object({
      status: t.Literal("ok"),
      version: t.String(),
      uptime_seconds: t.Integer(),
    }),
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
    response: t.Object({ status: t.String(), checks: t.Record(t.String(), t.String()) }),
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
    response: t.Object({ status: t.String(), version: t.String(), time: t.String() }),
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
