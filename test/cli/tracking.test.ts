import { expect, test } from "bun:test"
import { trackingText } from "../../cli/lib/email-text"
import { painter } from "../../cli/lib/terminal"
import { ID } from "./fake-api"

const NONE = { total: 0, unique: 0, human: 0, machine: 0, first_at: null, last_at: null }
const AT = "2026-11-21T10:30:00.000Z"
const text = (own: object) =>
  trackingText(
    {
      ...{ email_id: ID, track_opens: true, track_clicks: true },
      ...{ opens: NONE, clicks: NONE, links: [], recent: [] },
      ...own,
    },
    painter(false),
  )

test("emails tracking tells people from machines, then the links and the newest hits", () => {
  const opens = { ...NONE, total: 4, unique: 1, human: 2, machine: 2 }
  const url = "https://shop.test/a"
  const lines = text({
    opens,
    links: [{ url, total: 3, unique: 1, human: 1, last_at: AT }],
    recent: [
      {
        ...{ type: "click", timestamp: AT, url, actor: "human" },
        ...{ client: "Firefox", os: "Linux", device: "desktop" },
      },
    ],
  })
  expect(lines).toContain("2 by 1 person, 2 by machines, 4 in all")
  expect(lines).toContain(`1 of 3  ${url}`)
  expect(lines).toMatch(/click human {3}Firefox, Linux, desktop https:\/\/shop\.test\/a$/)
})

test("what is not tracked is called so", () => {
  expect(text({ track_opens: false, track_clicks: false })).toMatch(
    /openings\s+not tracked\n.*clicks\s+not tracked$/,
  )
})
