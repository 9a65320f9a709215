import { expect, test } from "bun:test"
import { openClient } from "../../../cli/lib/client"
import { NOBODY } from "../../../cli/lib/profiles"
import { painter } from "../../../cli/lib/terminal"
import { openActions } from "../../../cli/tui/actions"
import { parseFilter } from "../../../cli/tui/filter"
import { messageText } from "../../../cli/tui/messages-screen"
import type { MessageParts } from "../../../cli/tui/state"
import type { News } from "../../../cli/tui/store"
import { email, FakeApi, ID, KEY } from "../fake-api"

const template = { id: "019a", name: "receipt", version: 3 }

test("the newest emails of a template are read from the server, as often as asked", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [email({ template })])
  const filter = parseFilter("template:receipt since:1h")
  if ("problem" in filter) throw new Error(filter.problem)
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 2000, dry_run: false })
  const nothing = () => {}
  for (const time of [1, 2]) {
    const { promise, resolve } = Promise.withResolvers<News>()
    const act = openActions({
      ...{ client, dispatch: resolve, copy: nothing, redraw: nothing, quit: nothing },
    })
    act({ do: "load_newest", filter })
    expect(await promise).toMatchObject({
      is: "facts",
      facts: [{ id: ID, template: ["receipt", "019a"] }],
    })
    expect(api.seen.length).toBe(time)
    expect(api.seen.at(-1)?.query).toEqual({ template_id: "receipt", per_page: "100" })
  }
})

test("an opened message tells its template and version", () => {
  const parts = { email: email({ template }), attempts: [] } as unknown as MessageParts
  expect(messageText(parts, painter(false), 80, "Timeline")).toMatch(/template +receipt, version 3/)
})
