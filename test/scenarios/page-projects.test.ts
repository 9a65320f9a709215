import { expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { runBinary } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sendMail } from "./page-mails"
import { becomeOwner, keyed } from "./page-owner"
import { faultsAtWidths, linkInMail, SIGNED_OUT } from "./page-visits"
import { lastingHome, lean, startServe } from "./serve"

test.skipIf(missing("chromium-headless-shell"))(
  "under `serve` a person of two projects chooses one, and sees its mails and no others",
  async () => {
    using lasting = lastingHome()
    const { home } = lasting
    await using server = await startServe({ home })
    const data_dir = join(home, "belfry")
    const setup_token = readFileSync(join(data_dir, "setup-token"), "utf8").trim()
    const ann = await becomeOwner(server, setup_token, { project_name: "Shop" })
    const shop = { project: ann.made.project, key: ann.made.api_key.key }
    const blog = await ann.makeProject("Blog")
    const payroll = await ann.makeProject("Payroll")
    const mails = new Map<string, string>()
    for (const { project, key } of [shop, blog, payroll]) {
      const mail = await sendMail(keyed(server, key), { subject: `Only of ${project.name}` })
      mails.set(project.name, mail.id)
    }
    const roles = [shop, blog].map(({ project }) => ({ project_id: project.id, role: "developer" }))
    const guest = { email: "guest@mailbox.test", role: "member", projects: roles }
    await ann.post("/v1/accounts/me/members/invite", guest)
    const cli = (...words: string[]) => runBinary(words, { home, env: lean })
    const link = await linkInMail({ cli, data_dir }, guest.email, /\/invitation\/[\w.-]+/)
    const token = link.replace("/invitation/", "")
    const person = { name: "Guest", password: "Other-Horse-77" }
    const accepted = await fetch(`${server.url}/v1/invitations/${token}/accept`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(person),
    })
    expect(accepted.status).toBe(200)

    await using browser = await startBrowser()
    // A project that is not this person's is refused, for the list and for the stream.
    const refused = [/status of 404.*\/v1\/(mailbox|events)/, /\/v1\/events\/stream.*code: 404/]
    const expected = [...SIGNED_OUT, ...refused]
    const url = `${server.url}/sign-in?next=%2Fmailbox`
    await browser.visit(url, { screen: "desktop", expected }, async (page) => {
      await page.fill("Email", guest.email)
      await page.fill("Password", person.password)
      await page.click("Sign in", "button")
      await page.named("Project", "combobox")
      const names = "[...document.querySelector('header select').options].map((one) => one.text)"
      expect((await page.read<string[]>(names)).toSorted()).toEqual(["Blog", "Shop"])
      const subjects =
        "[...document.querySelectorAll('[role=option] .subject')].map((one) => one.innerText)"
      for (const { id, name } of [blog.project, shop.project, blog.project]) {
        await page.tab.select("header select", id)
        await page.shows(`Only of ${name}`)
        expect(await page.read<string[]>(subjects)).toEqual([`Only of ${name}`])
        expect([name, await faultsAtWidths(page, name)]).toEqual([name, []])
      }
      await page.tab.reload()
      await page.shows("Only of Blog")
      for (const name of ["Shop", "Payroll"]) {
        await page.goto(`${server.url}/mailbox/${mails.get(name)}`)
        await page.shows("This mail does not exist any more")
        await page.shows("Only of Blog")
        expect(await page.read<string>("document.documentElement.outerHTML")).not.toContain(
          `Only of ${name}`,
        )
      }
      await page.goto(`${server.url}/mailbox/${mails.get("Blog")}`)
      await page.until("document.querySelector('h2')?.innerText === 'Only of Blog'")
      // The choice of a tab is no right: a project that somebody writes there is not used.
      await page.read(
        `sessionStorage.setItem("belfry-project", ${JSON.stringify(payroll.project.id)})`,
      )
      await page.goto(`${server.url}/mailbox`)
      await page.until(`document.querySelectorAll('[role=option]').length === 1`)
      expect(await page.read<string>("document.body.innerText")).not.toContain("Only of Payroll")
    })
  },
)
