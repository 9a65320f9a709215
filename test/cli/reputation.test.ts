import { expect, test } from "bun:test"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"
import { troubled } from "./tui/rows"

const flags = (api: FakeApi) => ["--url", api.url, "--api-key", KEY]
const ROUTE = "/v1/accounts/me/reputation"

test("show prints the status, both rates beside their thresholds, and what is held", async () => {
  using api = new FakeApi()
  const held = troubled().held.map((one) => ({ ...one, tag: "news" }))
  api.data(`GET ${ROUTE}`, troubled({ held }))
  const { exit, out } = await belfry(["reputation", "show", "--output", "table", ...flags(api)])
  expect(exit).toBe(0)
  for (const text of [
    /status +throttled/,
    /reason +bounce_rate=6.1%;threshold=5%;window=7d/,
    /rejected +39.3 % of new sends/,
    /bounces +▓+░+ 6.1 % \(throttled at 5 %, frozen at 10 %\)/,
    /complaints +▓+░+ 0.04 % \(throttled at 0.1 %, frozen at 0.5 %\)/,
    /minimum +Belfry acts on rates from 200 sent \(throttled\) and 500 sent \(frozen\)/,
    /forecast +no change expected; Belfry freezes the account after 182 more bounces or 19 more complaints/,
    /tag news +0.8 % +\d+ \w+ +120/,
    /例え.test +400 +20 \(6.1 %\)/,
  ]) {
    expect(out).toMatch(text)
  }
})

test("release names a tag or a template, and says how many messages go on", async () => {
  using api = new FakeApi()
  api.data(`POST ${ROUTE}/release`, { released: 2 })
  const release = (...words: string[]) => belfry(["reputation", "release", ...words, ...flags(api)])
  const { exit, out } = await release("--tag", "news")
  expect([exit, JSON.parse(out)]).toEqual([0, { released: 2 }])
  expect(api.seen.at(-1)?.body).toEqual({ tag: "news" })
  for (const words of [[], ["--tag", "news", "--template", "t1"]]) {
    const refused = await release(...words)
    expect([refused.exit, refused.err]).toEqual([2, expect.stringContaining("--tag or --template")])
  }
})
