import { expect, test } from "bun:test"
import { openClient } from "../../../cli/lib/client"
import { NOBODY } from "../../../cli/lib/profiles"
import { openActions } from "../../../cli/tui/actions"
import type { Intent } from "../../../cli/tui/state"
import type { News } from "../../../cli/tui/store"
import { FakeApi, KEY } from "../fake-api"
import { readOf } from "./rows"

/** What comes of an intent. */
async function newsOf(api: FakeApi, intent: Intent): Promise<News> {
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 2000, dry_run: false })
  const { promise, resolve } = Promise.withResolvers<News>()
  const nothing = () => {}
  openActions({ client, dispatch: resolve, copy: nothing, redraw: nothing, quit: nothing })(intent)
  return await promise
}

test("a subscriber named by a step of a path is refused, and nothing is asked for", async () => {
  using api = new FakeApi()
  const news = await newsOf(api, readOf("audience", ".."))
  const problem = "subscriber_id: A URL cannot hold .. as a name, because it is a step of its path."
  expect(news).toEqual({
    is: "detail",
    screen: "audience",
    id: "..",
    tab: "Timeline",
    found: null,
    problem,
  })
  expect(api.seen).toEqual([])
})

test("topics are looked for by the server, which says whether there are more", async () => {
  using api = new FakeApi()
  api.data("GET /v1/topics", [], { has_more: true })
  const news = await newsOf(api, { do: "load_list", list: "topics", of: "old" })
  expect(news).toEqual({ is: "rows", list: "topics", of: "old", rows: [], more: true })
  await newsOf(api, { do: "load_list", list: "topics" })
  expect(api.seen.map(({ query }) => query)).toEqual([
    { per_page: "100", search: "old" },
    { per_page: "100" },
  ])
})
