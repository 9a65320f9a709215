import { Type as t } from "@sinclair/typebox"
import { millis, now } from "../core/time"
import { VERSION } from "../core/version"
import { count, text, time, word } from "../lib/record-fields"
import { type AnyRoute, route } from "./route"
import type { ServerHealth } from "./server-health"

const status = word(["ok", "degraded", "draining", "unavailable"])

/** Routes about the process itself. They need no credential, and touch no project. */
export const healthRoutes = (health: ServerHealth): AnyRoute[] => [
  route({
    ...open,
    path: "/healthz",
    summary: "Show that the process runs",
    description:
      "Answers 200 as long as the process runs. It checks nothing else. Use it to decide whether to restart the process.",
    produces: "application/json",
    response: t.Object(
      { status: t.Literal("ok"), version: text(VERSION), uptime_seconds: count(86_400) },
      { title: "Liveness" },
    ),
    handle: () => ({
      bare: {
        status: "ok" as const,
        version: VERSION,
        uptime_seconds: Math.floor((millis() - health.started_at) / 1000),
      },
    }),
  }),
  route({
    ...open,
    path: "/readyz",
    summary: "Show whether the server can accept requests",
    description:
      "Checks the database, the job loop, the disk and the mail servers. If a check fails or the server stops, it answers 503 with the same fields. `degraded` is 200: the server works, but something is to be mended, such as backups that fail. Use it to decide whether to send requests to this server.",
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
            description:
              "Troubles such as a provider that refuses the login, or held work. Failed backups and broken invariants make the status `degraded`.",
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
      const { status, isReady, warnings } = health
      const told = warnings.length > 0 ? { warnings } : {}
      const bare = { status, checks: health.checks(), ...told }
      return { bare, status: isReady ? 200 : 503 }
    },
  }),
  route({
    ...open,
    path: "/v1/health",
    summary: "Show status and version for API clients",
    description:
      "API clients can check that they reach a server, and its version. It needs no credential and uses no quota.",
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
