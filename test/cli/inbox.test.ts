import { afterAll, beforeAll, expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome } from "./belfry"
import { box } from "./box"

let server: Awaited<ReturnType<typeof box>>
beforeAll(async () => {
  server = await box()
  for (const name of ["user-42", "user-43"]) await json(["subscribers", "upsert", name])
})
afterAll(() => server[Symbol.asyncDispose]())

/** Runs a command with the key of the server. */
const ask = (words: string[]) =>
  server.ann([...words, "--url", server.url, "--api-key", server.api_key])

async function json<Printed = Message>(words: string[]): Promise<Printed> {
  const { exit, out, err } = await ask(words)
  expect([words.join(" "), exit, err]).toEqual([words.join(" "), 0, expect.any(String)])
  return JSON.parse(out) as Printed
}

type Message = { id: string; title: string } & Record<string, unknown>
type Sent = { id: string; messages: { id: string }[]; skipped: number }

const send = (...words: string[]) => json<Sent>(["inbox", "send", ...words])

test("all fields of a message have a flag, and data may come from a file", async () => {
  const file = join(freshHome(), "data.json")
  writeFileSync(file, '{"invoice": 7}')
  const { id } = await send(
    ...["--to", "user-42", "--title", "Ready", "--body", "It is\ndue.", "--action-url", "/7"],
    ...["--action-label", "Show", "--action", "pay=Pay=https://b.test/a=b", "--action", "no=No"],
    ...["--icon", "/i.svg", "--image-url", "/i.png", "--category", "billing", "--tag", "a"],
    ...["--priority", "high", "--data", `@${file}`, "--metadata", "order=A-7"],
    ...["--collapse-key", "invoice-7", "--expires", "7d"],
  )
  const shown = await json(["inbox", "get", id])
  expect(shown).toMatchObject({
    ...{ title: "Ready", body: "It is\ndue.", action_url: "/7", action_label: "Show" },
    ...{ icon: "/i.svg", image_url: "/i.png", category: "billing", tags: ["a"] },
    ...{ priority: "high", data: { invoice: 7 }, metadata: { order: "A-7" } },
    collapse_key: "invoice-7",
    actions: [
      { key: "pay", label: "Pay", url: "https://b.test/a=b" },
      { key: "no", url: null },
    ],
  })
  expect(Date.parse(String(shown.expires_at))).toBeGreaterThan(Date.now() + 6 * 86_400_000)
})

test("one send reaches several, and each list is narrowed by its flags", async () => {
  const several = ["--subscriber-ids", "user-42,user-43", "--title", "{{n}} of us", "--tag", "both"]
  const { messages } = await send(...several, "--var", "n=2")
  expect(messages.length).toBe(2)
  const ids = async (...words: string[]) =>
    (await json<Message[]>(["inbox", "list", ...words])).map(({ id }) => id)
  expect((await ids("--tag", "both")).sort()).toEqual(messages.map(({ id }) => id).sort())
  expect(await ids("--external-id", "user-43", "--state", "unseen")).toHaveLength(1)
  expect(await ids("--external-id", "user-43", "--state", "read")).toEqual([])
  const [first] = await json<Message[]>(["inbox", "list", "--tag", "both", "--limit", "1"])
  expect(first?.title).toBe("2 of us")
})

test("a key of idempotency sends once, and a dry run sends nothing", async () => {
  const words = ["--to", "user-42", "--title", "Once"]
  const [one, two] = [
    await send(...words, "--idempotency-key", "k1"),
    await send(...words, "--idempotency-key", "k1"),
  ]
  expect(two.id).toBe(one.id)
  const dry = await json<{ body: object }>(["inbox", "send", ...words, "--dry-run"])
  expect(dry.body).toEqual({ external_id: "user-42", title: "Once" })
})

test("a message is changed in content and state, and what contradicts itself is refused", async () => {
  const { id } = await send("--to", "user-43", "--title", "Due", "--tag", "a")
  const paid = ["--title", "Paid", "--tag", "b", "--action", "show=Show=/7", "--read", "--archived"]
  const changed = await json(["inbox", "update", id, ...paid])
  expect(changed).toMatchObject({ title: "Paid", tags: ["b"], read_at: expect.any(String) })
  expect(changed.actions).toMatchObject([{ key: "show", url: "/7" }])
  const back = await json(["inbox", "update", id, "--unread", "--unarchived"])
  expect(back).toMatchObject({ read_at: null, archived_at: null, seen_at: expect.any(String) })
  expect((await ask(["inbox", "update", id, "--read", "--unread"])).exit).toBe(2)
  expect((await ask(["inbox", "update", id])).exit).toBe(2)
})

test("a message is removed where somebody has said so, and the period has its counts", async () => {
  const { id } = await send("--to", "user-43", "--title", "Old")
  expect((await ask(["inbox", "rm", id])).exit).toBe(2)
  expect(await json(["inbox", "rm", id, "--yes"])).toMatchObject({ deleted: true })
  expect((await ask(["inbox", "get", id])).exit).toBe(3)
  for (const period of ["day", "week", "2026-11-01/2026-11-15"])
    expect((await ask(["inbox", "stats", "--period", period])).exit).toBe(0)
  expect(await json<object>(["inbox", "stats"])).toMatchObject({ created: expect.any(Number) })
})

const READER = ["--external-id", "user-42"]
const SHORT = ["--timeout", "500ms"]

test("tail begins with the counts of now, and ends with 0 at its time limit", async () => {
  const line = await json<object>(["inbox", "tail", ...READER, ...SHORT, "--json=type,counts"])
  expect(line).toMatchObject({ type: "ready", counts: { unread: expect.any(Number) } })
  expect((await ask(["inbox", "tail", ...READER, ...SHORT, "--quiet"])).out).toBe("")
})

test("what is wrong is told by its flag, before or after the server was asked", async () => {
  const code = async (...words: string[]) => {
    const { exit, err } = await ask(["inbox", ...words])
    return [exit, JSON.parse(err).error.code]
  }
  const hi = ["send", "--to", "user-42", "--title", "Hi"]
  expect(await code(...hi, "--action", "accept")).toEqual([2, "usage"])
  expect(await code(...hi, "--data", "[1]")).toEqual([2, "usage"])
  expect(await code(...hi, "--action-url", "javascript:alert(1)")).toEqual([7, "invalid_url"])
  expect(await code("send", "--to", "nobody", "--title", "Hi")).toEqual([3, "subscriber_not_found"])
  expect(await code("send", "--title", "Hi")).toEqual([7, "missing_required_field"])
  expect(await code("tail")).toEqual([2, "usage"])
  expect(await code("tail", "--external-id", "nobody")).toEqual([3, "subscriber_not_found"])
})
