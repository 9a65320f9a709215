import { expect, test } from "bun:test"
import { notifyEvents } from "../events/stream-facts"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { onTerminal } from "./belfry"
import { belfry } from "./lines"

quietLog()

const service = await sharedService()
const { url } = service.listen()

/** A project in which so many events happened; their ids, oldest first. */
async function projectWith(count: number) {
  const project = await service.project()
  const events = await notifyEvents(service.store, project, Array(count).fill("email.sent"), 0)
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const list = async (...words: string[]) => {
    const { exit, out, err } = await belfry(["events", "list", ...words], { env })
    return exit === 0 ? JSON.parse(out).map(({ id }: { id: string }) => id) : [exit, err]
  }
  return { env, list, ids: events.map(({ id }) => id) }
}

test("events list shows the latest first, and --oldest the feed from its beginning", async () => {
  const { list, ids } = await projectWith(130)
  expect(await list("--limit", "2")).toEqual(ids.slice(-2).reverse())
  expect(await list("--limit", "120")).toEqual(ids.slice(-120).reverse()) // over two pages
  expect(await list("--limit", "500")).toEqual(ids.toReversed())
  expect(await list("--limit", "2", "--oldest")).toEqual(ids.slice(0, 2))
  expect(await list("--limit", "2", "--after", ids[4] ?? "")).toEqual(ids.slice(5, 7))
  expect(await list("--since", "1h", "--limit", "3")).toEqual(ids.slice(-3).reverse())
  expect(await list("--event", "sms.*")).toEqual([])
})

test("events list --follow begins with the latest, and goes on with what comes", async () => {
  const { env, ids } = await projectWith(30)
  const words = ["events", "list", "--follow", "--limit", "3", "--ndjson", "--timeout", "3s"]
  const { exit, out } = await belfry(words, { env })
  const told = out.trim().split("\n")
  expect(exit).toBe(0)
  expect(told.map((line) => JSON.parse(line).id)).toEqual(ids.slice(-3))
})

test.each([
  ["events list --since", "yesterday", "10m, 2h or 7d for a span before now"],
  ["emails list --until", "7", "10m, 2h or 7d for a span before now"],
  ["keys update ID --expires", "10x", "90d or 12h for a span from now"],
  ["emails list --timeout", "soon", "250ms, 10s, 5m, 2h or 30d"],
  ["usage --period", "2026-13", "write the year and the month: 20"],
])("%s %s says what would be right here", async (line, wrong, right) => {
  const { exit, out } = await onTerminal([...line.split(" "), wrong, "--no-color"], {
    env: { BELFRY_URL: url, BELFRY_API_KEY: "svc_live_x" },
  })
  expect(exit).toBe(2)
  expect(out).toMatch(new RegExp(`"${wrong}" is not a (time|month)`))
  expect(out).toContain(right)
})

test("an expiry counts forward, and a time of another day is taken as it is", async () => {
  const { env } = await projectWith(0)
  const dry = async (when: string) => {
    const words = ["keys", "update", "ID", "--expires", when, "--dry-run"]
    return JSON.parse((await belfry(words, { env })).out).body.expires_at
  }
  expect(Date.parse(await dry("2d")) - Date.now()).toBeGreaterThan(1.9 * 86_400_000)
  expect(await dry("2027-01-02T03:04:05Z")).toBe("2027-01-02T03:04:05.000Z")
})
