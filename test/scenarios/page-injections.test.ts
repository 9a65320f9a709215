import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { isolated } from "../../src/lib/text"
import { INJECTIONS } from "../fixtures/hostile/injections"
import { base64, multipart, part } from "../fixtures/reports/mime"
import { type Belfry, startBelfry } from "../harness/binary"
import { type BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { startReceiver } from "../harness/receiver"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import { data, drop, type MailboxMail, mailWith, sendMail, write } from "./page-mails"
import { becomeOwner } from "./page-owner"
import { linkInMail, OWNER, SIGNED_OUT } from "./page-visits"
import { lean } from "./serve"

const word = (text: string) => `=?utf-8?B?${Buffer.from(text).toString("base64")}?=`

/** A mail with the text in every field that the pages show. */
const mailOf = (text: string, at: number) =>
  multipart(
    `From: ${word(text)} <eve@elsewhere.test>\nTo: ${word(text)} <hostile@mailbox.test>\nSubject: ${word(`${at} ${text}`)}\nX-Told: ${word(text)}\nMessage-ID: <${at}@elsewhere.test>`,
    "multipart/mixed",
    [
      part(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64",
        base64(text),
      ),
      part(
        `Content-Type: text/plain\nContent-Disposition: attachment; filename*=utf-8''${encodeURIComponent(text).replaceAll("'", "%27")}\nContent-Transfer-Encoding: base64`,
        base64(text),
      ),
    ],
  )

/** Names are one line. */
const NAMES = INJECTIONS.filter((text) => !/[\x00-\x1f]/.test(text))

/** An address that is valid, and that is an attribute where a page does not quote it. */
const EMAIL = "'/autofocus/onfocus=document.title='injected'/x='@mailbox.test"

/** So many endpoints of webhooks the timeline looks at; so many relays a project may have. */
const AT_ONCE = 20

describe.skipIf(missing("chromium-headless-shell"))("60 texts that would run as a script", () => {
  let server: Belfry
  /** Another one: the addresses above take all that one address may ask of open routes in a minute. */
  let people: Belfry
  let browser: TestBrowser

  let ann: Awaited<ReturnType<typeof becomeOwner>>

  beforeAll(async () => {
    const BELFRY_PROVIDERS_ALLOW_PRIVATE = "127.0.0.0/8"
    server = await startBelfry({ env: lean })
    people = await startBelfry({ env: { ...lean, BELFRY_PROVIDERS_ALLOW_PRIVATE } })
    const { setup_token } = JSON.parse(people.stdout.all[0] ?? "{}") as { setup_token: string }
    const [name = "", account_name = ""] = NAMES
    ann = await becomeOwner(people, setup_token, { email: EMAIL, name, account_name })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
    await people?.[Symbol.asyncDispose]()
  })

  /** Nothing ran, nothing was asked for, and the policy had nothing to hold back. */
  async function requireHarmless(page: BrowserPage, what: string) {
    const asked = page.requests.filter((one) =>
      /^\/(.*\/)?(injected|x)$/.test(new URL(one).pathname),
    )
    expect([what, await page.tab.title(), asked]).toEqual([
      what,
      expect.not.stringMatching(/^injected$/),
      [],
    ])
  }

  test("stand as text in the list, and in every view of a mail", async () => {
    for (const [at, text] of INJECTIONS.entries()) await drop(server, mailOf(text, at))
    const mails = await until("all mails", async () => {
      const list = await data<MailboxMail[]>(server, "/v1/mailbox?per_page=100")
      return list.length === INJECTIONS.length && list
    })
    await browser.visit(server.url, { screen: "desktop", expected: SIGNED_OUT }, async (page) => {
      await page.keepKey(server.api_key)
      await page.goto(`${server.url}/mailbox`)
      await page.shows("60 mails")
      await requireHarmless(page, "the list")
      await page.goto(`${server.url}/mailbox/${mails[0]?.id}`)
      for (const [at, { subject }] of mails.entries()) {
        const heading = "document.querySelector('.opened h2')?.title"
        await page.until(`${heading} === ${JSON.stringify(subject)}`)
        const views = await page.read<number>(viewsFrom(at))
        expect(views).toBeGreaterThanOrEqual(5)
        await requireHarmless(page, subject)
        await page.press("n") // the next mail
      }
    })
  })

  test("stand as text where an address brings them: searches, codes, the next page", async () => {
    await browser.visit(
      server.url,
      { expected: [...SIGNED_OUT, /status of 404/] },
      async (page) => {
        for (const [at, text] of INJECTIONS.entries()) {
          const told = encodeURIComponent(text)
          const paths = [`/docs/search?q=${told}`, `/docs/errors/${told}`, `/sign-in?next=${told}`]
          paths.push(`/device?user_code=${told}`)
          paths.push(...paths.splice(0, at % paths.length)) // another one is the first
          for (const path of paths.slice(0, sizes.injected_places)) {
            await page.goto(`${server.url}${path}`)
            await requireHarmless(page, path)
          }
        }
      },
    )
  })

  test("stand as text in the addresses of webhooks, where a mail tells what heard of it", async () => {
    using receiver = startReceiver()
    const urlOf = (text: string) => `${receiver.url}?${text.replaceAll(/\s/g, "/")}`
    const fieldsOf = (text: string) => ({
      url: urlOf(text),
      description: NAMES.includes(text) ? text : null,
    })
    const rounds = [0, 1, 2].map((at) => INJECTIONS.slice(at * AT_ONCE, (at + 1) * AT_ONCE))
    expect(rounds.flat()).toEqual([...INJECTIONS])
    const ids: string[] = []
    for (const text of rounds[0] ?? []) {
      const body = { ...fieldsOf(text), events: ["email.delivered"] }
      const made = await write<{ id: string }>(people, "POST", "/v1/webhooks", body)
      ids.push(made.id)
    }
    const { id } = await sendMail(people, { subject: "Told to webhooks" })
    await until("all endpoints heard of it", () => receiver.received.length === AT_ONCE)
    await browser.visit(people.url, { screen: "desktop", expected: SIGNED_OUT }, async (page) => {
      await page.keepKey(people.api_key)
      for (const texts of rounds) {
        for (const [at, text] of texts.entries())
          await write(people, "PATCH", `/v1/webhooks/${ids[at]}`, fieldsOf(text))
        await page.goto(`${people.url}/mailbox/${id}`)
        await page.click("Timeline", "tab")
        const shown =
          "[...document.querySelectorAll('.deliveries bdi')].map((one) => one.textContent)"
        await page.until(`${shown}.length === ${AT_ONCE}`)
        expect((await page.read<string[]>(shown)).toSorted()).toEqual(texts.map(urlOf).toSorted())
        await requireHarmless(page, "the timeline")
      }
    })
  })

  test("stand as text in the names of relays, and are no domain, where a mail is released", async () => {
    const relay = { host: "127.0.0.1", port: 2525, tls: "none" }
    const path = "/v1/providers/email_provider/config"
    const short = NAMES.filter((text) => text.length <= 100)
    expect(short.length).toBeGreaterThan(50)
    const ids: string[] = []
    for (const name of short.slice(0, AT_ONCE)) {
      const body = { provider: "smtp", name, credentials: relay }
      ids.push((await ann.post<{ id: string }>(path, body, ann.made.project.id)).id)
    }
    for (const domain of INJECTIONS) {
      const body = JSON.stringify({ domain })
      const { status } = await people.request("/v1/domains", { method: "POST", body })
      expect([domain, status]).toEqual([domain, 422])
    }
    const host = "'/autofocus/onfocus=document.title='injected'.test"
    await drop(people, `From: eve@${host}\nTo: hostile@mailbox.test\nSubject: No domain\n\nHello`)
    const { id } = await mailWith(people, "No domain")
    const expected = [...SIGNED_OUT, /status of 4\d\d.*\/release/]
    await browser.visit(people.url, { screen: "desktop", expected }, async (page) => {
      await page.keepKey(people.api_key)
      for (let from = 0; from < short.length; from += AT_ONCE) {
        const names = short.slice(from, from + AT_ONCE)
        for (const [at, name] of names.entries())
          await ann.patch(`${path}/${ids[at]}`, { name }, ann.made.project.id)
        await page.goto(`${people.url}/mailbox/${id}`)
        await page.click("Release", "button")
        const options =
          "[...document.querySelectorAll('dialog option')].map((one) => one.textContent)"
        await page.until(`${options}.length > ${AT_ONCE}`)
        const shown = await page.read<string[]>(options)
        expect(shown).toEqual(
          expect.arrayContaining(names.map((name) => `${isolated(name)} (smtp)`)),
        )
        await page.tab.select("dialog select", ids[0] ?? "")
        await page.tab.click("dialog button[type=submit]")
        await page.until("document.querySelector('dialog [role=alert]')")
        await requireHarmless(page, "the release")
      }
    })
  })

  test("stand as text in the names of projects, of the account and of the person", async () => {
    const ids: string[] = []
    for (const name of NAMES)
      ids.push((await ann.post<{ id: string }>("/v1/projects", { name })).id)
    const look = { screen: "desktop", expected: SIGNED_OUT } as const
    await browser.visit(`${people.url}/sign-in`, look, async (page) => {
      await page.fill("Email", EMAIL)
      await page.fill("Password", OWNER.password)
      await page.click("Sign in", "button")
      await page.shows(EMAIL)
      const hasAll = `document.querySelectorAll('header option').length === ${NAMES.length + 1}`
      await page.until(hasAll)
      const options =
        "[...document.querySelectorAll('header option')].map((one) => one.textContent)"
      expect(await page.read<string[]>(options)).toEqual(expect.arrayContaining(NAMES))
      for (const path of ["/", "/mailbox"]) {
        await page.goto(`${people.url}${path}`)
        await page.shows(EMAIL)
        for (const id of ids.slice(0, AT_ONCE)) {
          await page.until(hasAll)
          await page.tab.select("header select", id)
        }
        await requireHarmless(page, path)
      }
    })
    const guest = { email: "guest@mailbox.test", role: "member" }
    await ann.post("/v1/accounts/me/members/invite", guest)
    const link = await linkInMail(people, guest.email, /\/invitation\/[\w.-]+/)
    const name = NAMES.filter((text) => /^(<\/title>|["']><)/.test(text)).join("")
    await ann.patch("/v1/accounts/me", { name })
    await browser.visit(`${people.url}${link}`, {}, async (page) => {
      const heading = "document.querySelector('h1').textContent"
      expect(await page.read<string>(heading)).toBe(`Join ${name}`)
      await requireHarmless(page, "the invitation")
    })
  })
})

/** Opens tabs of the mail, others for another mail, waits for what each loads, and resolves to how many there are. */
const viewsFrom = (at: number) => `(async () => {
  const tabs = [...document.querySelectorAll("[role=tab]")]
  for (const tab of tabs.filter((_, place) => (place + ${at}) % 4 < ${sizes.injected_places})) {
    tab.click()
    for (let waits = 0; waits < 300; waits++) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      const panel = document.querySelector("[role=tabpanel]")
      if (panel && !panel.querySelector("[role=status]") && waits > 1) break
    }
    for (const one of document.querySelectorAll("details")) one.open = true
  }
  return tabs.length
})()`
