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
    description:
      "Answers 200 as long as the process runs. It looks at nothing else. Use it to decide whether to start the process again.",
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
    description:
      "Looks at the database, the job loop, the disk and the mail servers. It answers 503 with the same fields when one of them is in trouble, or while the server stops. Use it to decide whether to send requests here.",
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
        warnings: t.Optional(
          t.Array(t.String(), {
            description: "Providers with trouble. They fail nothing here.",
            examples: [
              [
                "smtp, the provider of this instance, refuses our login since 2026-11-22T10:00:00.000Z.",
              ],
            ],
          }),
        ),
      },
      { title: "Readiness" },
    ),
    handle: async () => {
      await health.look()
      const { status, warnings } = health
      const init = { status: status === "ok" ? 200 : 503 }
      const told = warnings.length > 0 ? { warnings } : {}
      return Response.json({ status, checks: health.checks(), ...told }, init)
    },
  }),
  route({
    ...open,
    path: "/v1/health",
    summary: "Status and version, for API clients",
    description:
      "For API clients that want to know whether they reach a server, and which version it has. It needs no credential and counts against no quota.",
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
