import { expect, test } from "bun:test"
import { openClient } from "../../../cli/lib/client"
import { NOBODY } from "../../../cli/lib/profiles"
import { painter } from "../../../cli/lib/terminal"
import { openActions } from "../../../cli/tui/actions"
import { bodyLines, detailLines, infoLine } from "../../../cli/tui/frame"
import { press } from "../../../cli/tui/press"
import type { Intent, State } from "../../../cli/tui/state"
import { applyNews, type News } from "../../../cli/tui/store"
import { email, FakeApi, ID, KEY } from "../fake-api"
import { endUser, monitorWith, readOf, userSession } from "./rows"

const plain = painter(false)

const ann = endUser("u2", { email: "ann@example.com", email_verified: true })
const bob = endUser("u1", { email: "bob@example.com", status: "suspended" })

/** The screen of users with two of them; the newest is chosen. */
const screen = (columns = 130): State =>
  applyNews(press(monitorWith(0, columns), "8").state, {
    ...{ is: "rows", list: "users", rows: [ann, bob], more: true },
  }).state

function pressed(state: State, ...keys: string[]): { state: State; intents: Intent[] } {
  const intents: Intent[] = []
  let now = state
  for (const key of keys) {
    const next = press(now, key)
    now = next.state
    intents.push(...next.intents)
  }
  return { state: now, intents }
}

/** What comes of an intent. */
async function newsOf(api: FakeApi, intent: Intent): Promise<News> {
  const connection = { ...NOBODY, url: api.url, api_key: KEY }
  const client = openClient(connection, { timeout: 2000, dry_run: false })
  const { promise, resolve } = Promise.withResolvers<News>()
  const nothing = () => {}
  openActions({ client, dispatch: resolve, copy: nothing, redraw: nothing, quit: nothing })(intent)
  return await promise
}

test("the list shows users with their status, and says that there are more", () => {
  const text = bodyLines(screen(), plain, false).join("\n")
  expect(text).toMatch(/ann@example.com .*active +email/)
  expect(text).toMatch(/bob@example.com .*suspended +email ✗/)
  expect(infoLine(screen(), plain)).toContain("2+ users (/ finds others)   1 suspended")
})

test("a filter is asked for, Esc takes it away, and what an older filter found comes too late", () => {
  const typed = pressed(screen(), "/", ..."status:active ann", "<enter>")
  const of = "status:active ann"
  expect(typed.intents).toEqual([{ do: "load_list", list: "users", of }])
  const late = applyNews(typed.state, { is: "rows", list: "users", rows: [bob] }).state
  expect(late.lists.users.rows).toBeNull()
  const found = applyNews(typed.state, { is: "rows", list: "users", of, rows: [ann] }).state
  expect(infoLine(found, plain)).toContain(`filter: ${of}   1 user`)
  expect(pressed(found, "<escape>").intents).toEqual([{ do: "load_list", list: "users" }])
  const wrong = pressed(screen(), "/", ..."colour:red", "<enter>")
  expect(wrong.state.prompt?.problem).toContain("the words are application, environment")
})

test("an application is named by its slug, and one that is unknown is said", async () => {
  using api = new FakeApi()
  api.data("GET /v1/auth/applications", [{ id: ID, slug: "shop" }])
  api.data("GET /v1/auth/users", [ann])
  const of = "application:shop environment:test phone:+491511 q words"
  const news = await newsOf(api, { do: "load_list", list: "users", of })
  expect(news).toMatchObject({ is: "rows", list: "users", of, rows: [ann] })
  const asked = api.seen.find(({ path }) => path === "/v1/auth/users")
  expect(asked?.query).toEqual({
    ...{ per_page: "100", application_id: ID, environment: "test" },
    ...{ phone_number: "+491511", q: "q words" },
  })
  const unknown = await newsOf(api, { do: "load_list", list: "users", of: "application:none" })
  expect(unknown).toMatchObject({ is: "problem", problem: "there is no application none" })
})

test("an opened user shows what they sign in with, their sessions and whether the last mails arrived", async () => {
  const opening = pressed(screen(), "<enter>")
  expect(opening.intents).toEqual([readOf("users", "u2")])
  using api = new FakeApi()
  const account = { id: "i1", provider: "google", provider_user_id: "1081", email: "a@g.test" }
  const identities = [{ ...account, linked_at: ann.created_at }]
  api.data("GET /v1/auth/users/u2", { ...ann, mfa_methods: ["totp", "passkey"], identities })
  api.data("GET /v1/auth/users/u2/sessions", [userSession("s1", { device: "Firefox on Linux" })])
  api.data("GET /v1/auth/organizations", [
    { id: "o1", name: "Acme", role: "owner", mfa_required: true },
  ])
  api.data("GET /v1/emails", [email({ subject: "Your code", status: "delivered" })])
  const { state } = applyNews(opening.state, await newsOf(api, readOf("users", "u2")))
  const text = detailLines(state, 100, false).join("\n")
  expect(text).toContain("Firefox on Linux")
  expect(text).toMatch(/ORGANIZATIONS\s*\n.*\n.*Acme +owner +required/)
  const asked = api.seen.find(({ path }) => path === "/v1/auth/organizations")
  expect(asked?.query).toMatchObject({ user_id: "u2", environment: "live" })
  expect(text).toMatch(/mfa_methods +totp, passkey/)
  expect(text).toMatch(/ACCOUNTS ELSEWHERE\s*\n.*\n.*google +1081 +a@g.test/)
  expect(text).toMatch(/LAST MAILS OF SIGN-INS\s*\n.*\n.*Your code +delivered/)
  expect(api.seen.find(({ path }) => path === "/v1/emails")?.query).toEqual({
    ...{ per_page: "5", to: "ann@example.com", stream: "auth" },
  })
})

test("sessions end, and users are suspended and activated, after a yes", () => {
  const ending = pressed(screen(), "R")
  expect(ending.state.question?.text).toBe("End all sessions of ann@example.com?")
  expect(pressed(ending.state, "n").intents).toEqual([])
  expect(pressed(ending.state, "y").intents).toMatchObject([
    { name: "DELETE /v1/auth/users/{user_id}/sessions", input: { params: { user_id: "u2" } } },
  ])
  expect(pressed(screen(), "s", "y").intents).toMatchObject([
    { name: "POST /v1/auth/users/{user_id}/suspend", input: { params: { user_id: "u2" } } },
  ])
  expect(pressed(screen(), "j", "s").state.notice?.text).toContain("a activates them")
  expect(pressed(screen(), "j", ":", ..."activate", "<enter>", "y").intents).toMatchObject([
    { name: "POST /v1/auth/users/{user_id}/activate", input: { params: { user_id: "u1" } } },
  ])
})
