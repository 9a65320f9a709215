import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { HOSTILE_MAILS } from "../fixtures/hostile/mails"
import { startBrowser, type TestBrowser } from "../harness/browser"
import { client } from "../harness/client"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"
import { htmlMail, putMail } from "./received"

/** Time for whatever a page does by itself: a refresh after 0 seconds, a script, a picture. */
const IDLE_MS = 500

/** The html of the mails as it came, under the policy of the page that shows mails: nothing is taken out. */
describe.skipIf(missing("chromium-headless-shell"))(
  "without any other protection, the policy",
  () => {
    const asked: string[] = []
    const canary = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url, method }) => {
        asked.push(`${method} ${new URL(url).pathname}`)
        return new Response("", { headers: { "access-control-allow-origin": "*" } })
      },
    })
    let browser: TestBrowser
    let headers: Record<string, string>

    beforeAll(async () => {
      browser = await startBrowser()
      const service = await sharedService()
      const project = await service.project()
      const id = await putMail(service, project, { raw: htmlMail("<p>x</p>") })
      const { html_url } = (await project.get(`/v1/mailbox/${id}`)).body.data
      const page = await client(service.app, undefined).get(html_url)
      headers = Object.fromEntries(page.headers)
    })
    afterAll(async () => {
      await canary.stop(true)
      await browser?.[Symbol.asyncDispose]()
    })

    test.each(HOSTILE_MAILS.map((one) => [one.name, one] as const))(
      "holds back %s",
      async (_, mail) => {
        const html = mail.html(`http://127.0.0.1:${canary.port}`)
        await using site = Bun.serve({ port: 0, fetch: () => new Response(html, { headers }) })
        const url = `http://127.0.0.1:${site.port}/`
        await browser.visit(url, { expected: [/./] }, async (page) => {
          await Bun.sleep(IDLE_MS)
          expect(page.tab.url()).toBe(url)
          expect(await page.tab.browserContext().pages()).toHaveLength(1)
        })
        expect(asked).toEqual([])
      },
    )
  },
)
