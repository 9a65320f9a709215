import { expect, test } from "bun:test"
import { startTlsRelay } from "../fakes/tls-relay"
import { startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { commandsOf, guideShell } from "./guide-shell"
import { until } from "./mails"
import { mailWith } from "./page-mails"

const first_steps = commandsOf("README.md", "Start with two commands")
const [first_up = ""] = first_steps
/** With this line the shell finds the command `belfry`. */
const path_line = first_steps.find((line) => line.startsWith("export PATH=")) ?? ""
const [sandbox = "", restart = "", release = ""] = commandsOf(
  "README.md",
  "Send a caught mail for real",
)

/** Nobody answers for the README's relay. The one of this machine has another name. */
const toRelay = (command: string) => command.replace("=smtp.example.com ", "=localhost ")

test("the guide of the mailbox prints the same way to a relay as the README", () => {
  expect(first_up).toStartWith("./install.sh up ")
  expect(path_line).toBe(
    'export PATH="$PWD/dist:$PATH"    # your shell then finds the command belfry',
  )
  expect(restart).toContain("belfry up ")
  expect(toRelay(restart)).toContain("BELFRY_PROVIDERS_SMTP_HOST=localhost ")
  expect(commandsOf("docs/mailbox.md", "Release a mail").slice(0, 2)).toEqual([sandbox, restart])
})

test.skipIf(missing("chromium-headless-shell", "python3", "tmux", "openssl"))(
  "somebody with the README and a phone starts `up`, opens its link, sends a mail, looks at it, finds its dead link, releases it, and does the same from a program",
  async () => {
    using relay = await startTlsRelay("localhost")
    const respond = ({ url }: Request) =>
      new Response("", { status: url.endsWith("/alive") ? 200 : 404 })
    await using site = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond })
    // A free port in place of 587, and a certificate that no authority of the system signed.
    const env = {
      BELFRY_PROVIDERS_SMTP_PORT: String(relay.port),
      NODE_EXTRA_CA_CERTS: relay.authority,
    }
    await using shell = guideShell({ env, first: path_line })
    const first = await shell.start(first_up)
    await shell.run(sandbox)
    await first.interrupt()
    const server = await shell.start(toRelay(restart))
    expect(server.api_key).toBe(first.api_key)
    await using browser = await startBrowser()
    await browser.visit(server.open_url, { screen: "phone" }, async (page) => {
      await page.click("Write a mail", "button")
      await page.fill("From", "me@example.com")
      await page.fill("To", "ann@example.org")
      await page.fill("Subject", "From my phone")
      await page.fill(
        "HTML",
        `<p><a href="${site.url}alive">a</a> <a href="${site.url}gone">b</a></p>`,
      )
      await page.click("Send", "button")
      await page.shows("1 of 5")
      await page.click("Open the mailbox", "link")
      await page.shows("From my phone")
      await page.tab.tap("[role=option]")
      await page.until("document.querySelector('iframe')?.clientWidth > 300")
      await page.click("Dark", "button")
      await page.until("document.querySelector('iframe').src.endsWith('scheme=dark')")
      expect(await page.layoutFaults()).toEqual([])

      await page.click("Check", "tab")
      await page.click("Check the links", "button")
      await page.shows("1 dead link")
      expect(relay.received).toEqual([])
      await page.click("Release", "button")
      await page.shows("Release this mail to a relay?")
      expect(await page.layoutFaults()).toEqual([])
      expect(await page.accessibilityProblems()).toEqual([])
      await page.read(
        "[...document.querySelectorAll('dialog button')].find((one) => one.innerText === 'Release').click()",
      )
      await until("the relay has the mail", () => relay.received.length > 0)
      expect(relay.received[0]).toMatchObject({
        raw: expect.stringContaining("Subject: From my phone"),
        is_secure: true,
        login: "apikey:secret",
      })
      await shell.run(release)
      await until("the relay has the mail again", () => relay.received.length > 1)
      expect(relay.received[1]?.raw).toContain("Subject: From my phone")

      await page.goto(`${server.url}/docs/postEmails`)
      await page.click("Python", "radio")
      const example = await page.read<string>(
        "[...document.querySelectorAll('.example.python code')].find((one) => one.checkVisibility()).textContent",
      )
      const run = Bun.spawnSync(["python3", "-c", example], {
        env: {
          PATH: process.env.PATH ?? "",
          BELFRY_URL: server.url,
          BELFRY_API_KEY: server.api_key,
        },
      })
      expect([run.exitCode, run.stderr.toString()]).toEqual([0, ""])
      const [, subject = ""] = /"subject": "([^"]+)"/.exec(example) ?? []
      expect((await mailWith(server, subject)).subject).toBe(subject)
    })
  },
)
