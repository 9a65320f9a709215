import { describe, expect, test } from "bun:test"
import { startBelfry } from "../harness/binary"
import { missing } from "../harness/peers"
import { startReceiver } from "../harness/receiver"
import { sharedPages } from "../harness/shared-pages"
import { until } from "./mails"
import { data, drop, mailWith, sendMail, write } from "./page-mails"
import { faultsOf, openLink } from "./page-visits"

describe.skipIf(missing("chromium-headless-shell"))("the page of the mailbox shows", () => {
  const on = sharedPages(startBelfry)

  test("what became of each mail, as it is now", async () => {
    await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
      await page.shows("First steps") // signed in: the link holds for one page
      await page.goto(`${on.server.url}/mailbox`)
      const mail = { from: "me@mailbox.test", to: "complain@mailbox.test", subject: "Unwanted" }
      await write(on.server, "POST", "/v1/emails", { ...mail, text: "x" })
      await page.until(`${ROWS}.some((row) => /complained/.test(row) && /Unwanted/.test(row))`)
    })
  })

  test.each([
    ["a desktop", 1280, 720],
    ["a phone", 390, 844],
  ])("the beginning of a mail on %s, however long its header is", async (_, width, height) => {
    const people = Array.from(
      { length: 40 },
      (_, at) => `"Somebody of Accounting ${at}" <p${at}@a.test>`,
    )
    const image = '<img src="https://elsewhere.test/1"><p>Hello</p>'
    const subject = "A rather long subject ".repeat(40).trim()
    const list = people.join(",\r\n ")
    await drop(
      on.server,
      `From: Ann <ann@elsewhere.test>\r\nTo: ${list}\r\nCc: ${list}\r\nSubject: ${subject}\r\nContent-Type: text/html\r\n\r\n${image}`,
    )
    const { id } = await mailWith(on.server, subject)
    await on.browser.visit(await openLink(on.server), {}, async (page) => {
      await page.shows("First steps")
      await page.tab.setViewport({ width, height })
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.named("Load images", "button")
      const top = await page.read<number>(
        "document.querySelector('iframe').getBoundingClientRect().top",
      )
      expect(top).toBeLessThan(height - 100)
    })
  })

  test("a long subject from right to left beside its sender, status and size, which it does not cut", async () => {
    const subject = `${"مرحبا بك في بلفري ".repeat(9)}(1)`
    await sendMail(on.server, { subject })
    await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox`)
      await page.shows("مرحبا")
      const row =
        "[...document.querySelectorAll('.mail-row')].find((one) => one.innerText.includes('مرحبا'))"
      const cut = `[...${row}.querySelectorAll('.line > *')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.className)`
      expect(await page.read<string[]>(cut)).toEqual(["subject"])
      expect(await page.layoutFaults()).toEqual([])
    })
  })

  test("that mail goes wrong on purpose, as long as it does", async () => {
    await on.browser.visit(await openLink(on.server), {}, async (page) => {
      await page.shows("First steps") // signed in: the link holds for one page
      await page.goto(`${on.server.url}/mailbox`)
      for (const [rate, name] of [
        ["0.5", "Chaos on"],
        ["0", "Chaos"],
      ] as const) {
        await page.click(rate === "0" ? "Chaos on" : "Chaos", "button")
        await page.fill("Share of recipients that bounce", rate)
        await page.click("Set", "button")
        await page.until("document.querySelector('dialog') === null")
        await page.named(name, "button")
      }
    })
    expect(await data(on.server, "/v1/mailbox/chaos")).toMatchObject({ bounce_rate: 0 })
  })

  test("the programs that lack a feature within the width of a phone, and the sender's name", async () => {
    const subject = "The width of a phone"
    const html =
      "<style>p{gap:1rem}@media(min-width:9px){p{color:red}}</style><video></video><p>x</p>"
    const body = { from: "Acme <me@mailbox.test>", to: "ann@mailbox.test", subject, html }
    await data(on.server, "/v1/emails", { method: "POST", body: JSON.stringify(body) })
    const { id } = await mailWith(on.server, subject)
    await on.browser.visit(await openLink(on.server), { screen: "phone" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.shows("Acme <me@mailbox.test>")
      await page.click("Check", "tab")
      await page.shows("Gmail (webmail, iOS, Android")
      expect(await page.layoutFaults()).toEqual([])
      const wide =
        "[...document.querySelectorAll('section.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"
      expect(await page.read<string[]>(wide)).toEqual([])
    })
  })

  test("the links of a mail, and what the check says of each, within the width of a phone", async () => {
    await using site = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("", { status: 404 }),
    })
    const long = `${site.url}${"a-long-path/".repeat(5)}and-its-end`
    const words = "Act now! Free money! Click here, 100 % guaranteed!"
    const html = `<p>${words} <a href="${long}">One</a> <a href="https://example.com/unsubscribe">Unsubscribe</a></p><style>p{gap:1rem}</style><video></video>`
    const { id } = await sendMail(on.server, { subject: "Links on a phone", html })
    await on.browser.visit(await openLink(on.server), { screen: "phone" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.click("Check", "tab")
      await page.click("Check the links", "button")
      await page.shows("The server answered 404.")
      await page.shows("not known")
      expect(await page.read<string[]>(CUT)).toEqual([])
      expect(await page.read<number>("document.querySelectorAll('table.stacked').length")).toBe(3)
      expect(await faultsOf(page, "links")).toEqual([])
      const tall =
        "Math.max(...[...document.querySelectorAll('td')].map((one) => one.offsetHeight))"
      expect(await page.read<number>(tall)).toBeLessThan(350)
    })
  })

  test("for whom each event was, and a deferral as what it is", async () => {
    const subject = "Deferred, with copies"
    const cc = ["kim@mailbox.test", "lou@mailbox.test"]
    const body = { from: "me@mailbox.test", to: "defer@mailbox.test", cc, subject, text: "x" }
    await write(on.server, "POST", "/v1/emails", body)
    const { id } = await mailWith(on.server, subject)
    await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.shows("kim@mailbox.test, lou@mailbox.test")
      await page.click("Timeline", "tab")
      await page.shows("email.soft_bounced")
      for (const address of ["defer@mailbox.test", ...cc]) await page.shows(`For ${address}`)
      await page.shows("Transient bounce")
      const tone = `[...document.querySelectorAll('.timeline .badge')].find((one) => one.innerText === 'email.soft_bounced').className`
      expect(await page.read<string>(tone)).toBe("badge warn")
      expect(await faultsOf(page, "timeline")).toEqual([])
    })
  })

  test("all who get a mail, folded where they are many", async () => {
    const named = Array.from({ length: 40 }, (_, at) => `r${at}@mailbox.test`)
    const copies = ['"Doe, Jo" <jo@mailbox.test>', "lou@mailbox.test"]
    const subject = "To many people"
    const lines = [`To: ${named.join(",\r\n ")}`, `Cc: ${copies.join(", ")}`, `Subject: ${subject}`]
    await drop(on.server, `From: me@mailbox.test\r\n${lines.join("\r\n")}\r\n\r\nHi\r\n`, named[0])
    const { id } = await mailWith(on.server, subject)
    await on.browser.visit(await openLink(on.server), { screen: "phone" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.shows(`${named[0]}\nand 39 more`)
      await page.shows(copies.join(", "))
      const tabs = "document.querySelector('[role=tablist]').getBoundingClientRect().bottom"
      expect(await page.read<number>(tabs)).toBeLessThan(700)
      expect(await faultsOf(page, "recipients")).toEqual([])
      await page.read("document.querySelector('.facts summary').click()")
      await page.shows(named.slice(1).join(", "))
      expect(await page.layoutFaults()).toEqual([])
    })
  })

  test("which webhooks heard of the mail, and what they answered", async () => {
    using glad = startReceiver()
    using busy = startReceiver(() => 503)
    using deaf = startReceiver()
    const subscribe = ({ url }: { url: string }, event: string) =>
      write<{ id: string }>(on.server, "POST", "/v1/webhooks", {
        ...{ url, events: [event] },
        retry_policy: { max_attempts: 2, intervals: [86_400] }, // no second attempt while it is looked at
      })
    const endpoints = [
      await subscribe(glad, "email.delivered"),
      await subscribe(busy, "email.delivered"),
      await subscribe(deaf, "email.bounced"),
    ]
    const { id } = await sendMail(on.server, { subject: "Told to webhooks" })
    await sendMail(on.server, { subject: "Told after it" })
    await until("two deliveries to each of two endpoints", async () => {
      const lists = endpoints.map((one) =>
        data<{ attempts: number }[]>(on.server, `/v1/webhooks/${one.id}/deliveries`),
      )
      const tried = (await Promise.all(lists)).flat().filter(({ attempts }) => attempts > 0)
      return tried.length === 4
    })
    await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
      await page.shows("First steps") // signed in: the link holds for one page
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.click("Timeline", "tab")
      await page.shows("email.delivered")
      const told = await page.read<[string, string[]][]>(DELIVERIES)
      expect(told.map(([type]) => type)).toContain("email.queued")
      const heard = [
        `success ${glad.url} 1 attempt, answered 200`,
        `failed ${busy.url} 1 attempt, answered 503`,
      ]
      const expected = (type: string) => (type === "email.delivered" ? heard.toSorted() : [])
      expect(told).toEqual(told.map(([type]) => [type, expected(type)]))
      expect(await faultsOf(page, "timeline")).toEqual([])
    })
    expect([glad.received.length, busy.received.length, deaf.received]).toEqual([2, 2, []])
  })

  test("which webhooks heard of an old mail, however much they heard of since", async () => {
    using receiver = startReceiver()
    const endpoint = { url: receiver.url, events: ["email.*"] }
    await write(on.server, "POST", "/v1/webhooks", endpoint)
    const { id } = await sendMail(on.server, { subject: "The old one" })
    const one = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Later", text: "x" }
    await write(on.server, "POST", "/v1/emails/batch", { messages: Array(50).fill(one) })
    await until("more deliveries than a page has", () => receiver.received.length > 120)
    await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
      await page.shows("First steps")
      await page.goto(`${on.server.url}/mailbox/${id}`)
      await page.click("Timeline", "tab")
      await page.shows("email.delivered")
      const told = await page.read<[string, string[]][]>(DELIVERIES)
      const heard = `success ${receiver.url} 1 attempt, answered 200`
      for (const [type, deliveries] of told)
        expect([type, deliveries]).toEqual([type, expect.arrayContaining([heard])])
      expect(told.length).toBeGreaterThan(2)
    })
  })
})

/** The texts of the list. */
const ROWS = "[...document.querySelectorAll('[role=option]')].map((one) => one.innerText)"

/** Tables that show a part of their width alone. */
const CUT =
  "[...document.querySelectorAll('section.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"

/** Of each event of the timeline its type, and what stands there of each delivery. */
const DELIVERIES = `[...document.querySelectorAll(".timeline > li")].map((entry) => [
  entry.querySelector("p").firstElementChild.innerText,
  [...entry.querySelectorAll(".deliveries li")].map((one) => one.innerText.trim().replace(/\\s+/g, " ")).sort(),
])`
